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

constexpr int kSpins = 200;  // fruitless polls before the core is yielded
// A thread that computes keeps the core for a slice of the scheduler, which is 0.75 ms or more. What takes it
// for less was a switch to another waiting thread, an interrupt or a thread of the kernel.
constexpr microseconds kLateYield{500};
constexpr microseconds kShortestSleep{20};
constexpr microseconds kLongestSleep{500};
constexpr microseconds kBelieved{100'000};  // how long a late yield counts

// Until when the core counts as wanted by others, in ticks of Clock. All threads of the process share it.
std::atomic<Clock::rep> shared_until{0};

thread_local int64_t progress_of_thread = 0;

void sleep_for(Clock::duration time) {
  // Linux may end a sleep up to 50 us late unless a thread asks for better.
  thread_local const int precise = prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
  static_cast<void>(precise);
  std::this_thread::sleep_for(time);
}

}  // namespace

void Backoff::progress_made() { ++progress_of_thread; }

void Backoff::pause() {
  if (progress_ != progress_of_thread) {
    progress_ = progress_of_thread;
    polls_ = 0;
  }
  if (polls_ < kSpins) {
    ++polls_;
    return;
  }
  const auto now = Clock::now();
  if (polls_ == kSpins) {
    ++polls_;
    since_ = now;
  }
  if (now.time_since_epoch().count() < shared_until.load(std::memory_order_relaxed)) {
    sleep_for(std::clamp<Clock::duration>((now - since_) / 16, kShortestSleep, kLongestSleep));
    return;
  }
  sched_yield();
  const auto back = Clock::now();
  if (back - now >= kLateYield) {
    shared_until.store((back + kBelieved).time_since_epoch().count(), std::memory_order_relaxed);
  }
}

}  // namespace shardmark
