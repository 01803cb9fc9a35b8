// Spins, yields and sleeps.
#include "base/backoff.h"

#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace shardmark {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

// What differs where there are more ranks than cores, because the rank that is waited for may need this core.
struct Patience {
  int spins;  // fruitless polls before the core is yielded
  // How late yields may be, from 0 to 1, before the core counts as wanted. The last one counts half.
  double most_late;
};
// One late yield is enough. With more ranks than cores it takes three in a row: one is another rank that
// computes before it waits, too, and that is how they take turns.
constexpr Patience kUsual{200, 0.4}, kOfMany{1, 0.8};
std::atomic<bool> are_many{false};

// A thread that computes keeps the core for a slice of the scheduler, which is 0.75 ms or more. What takes it
// for less was a switch to another waiting thread, an interrupt or a thread of the kernel.
constexpr microseconds kLateYield{500};
constexpr microseconds kShortestSleep{20};
constexpr microseconds kLongestSleep{500};
constexpr microseconds kBelieved{100'000};  // how long a late yield counts

// Until when the core counts as wanted by others, in ticks of Clock. All threads of the process share it.
std::atomic<Clock::rep> shared_until{0};

// How late the yields of the process were.
std::atomic<double> lateness_of_yields{0};

thread_local int64_t progress_of_thread = 0;

void sleep_for(Clock::duration time) {
  // Linux may end a sleep up to 50 us late unless a thread asks for better.
  thread_local const int precise = prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
  static_cast<void>(precise);
  std::this_thread::sleep_for(time);
}

}  // namespace

void Backoff::progress_made() { ++progress_of_thread; }

void Backoff::there_are_more_ranks_than_cores() { are_many.store(true, std::memory_order_relaxed); }

void Backoff::pause() {
  // A poll of this thread has found something since the last pause. The wait begins anew: it spins first,
  // and its sleeps are short again.
  if (progress_ != progress_of_thread) {
    progress_ = progress_of_thread;
    polls_ = 0;
  }
  const Patience& patience = are_many.load(std::memory_order_relaxed) ? kOfMany : kUsual;
  if (polls_ < patience.spins) {
    ++polls_;
    return;
  }
  const auto now = Clock::now();
  // This is the first pause after the spins. Sleeps are as long as a share of the time since then.
  if (polls_ == patience.spins) {
    ++polls_;
    since_ = now;
  }
  if (now.time_since_epoch().count() < shared_until.load(std::memory_order_relaxed)) {
    sleep_for(std::clamp<Clock::duration>((now - since_) / 16, kShortestSleep, kLongestSleep));
    return;
  }
  // Nobody is known to want the core. A yield tells whether that is still so: it returns late if another
  // thread used a slice of the core. The lateness is a running average in which the last yield counts half.
  // After one, two and three late yields in a row it is 0.5, 0.75 and 0.875, so 0.4 is passed by one and 0.8
  // by three.
  sched_yield();
  const auto back = Clock::now();
  const bool is_late = back - now >= kLateYield;
  const double before = lateness_of_yields.load(std::memory_order_relaxed);
  const double lateness = before + ((is_late ? 1 : 0) - before) / 2;
  lateness_of_yields.store(lateness, std::memory_order_relaxed);
  if (lateness > patience.most_late) {
    shared_until.store((back + kBelieved).time_since_epoch().count(), std::memory_order_relaxed);
  }
}

}  // namespace shardmark
