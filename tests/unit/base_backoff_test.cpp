// How much of a core a waiting thread takes from one that computes on it.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>

#include "base/backoff.h"

namespace shardmark {
namespace {

double cpu_seconds() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

void compute(double seconds) {
  while (cpu_seconds() < seconds) {
  }
}

// Binds the calling thread, and those that it starts, to one core while this lives.
class OneCore {
 public:
  OneCore() {
    pthread_getaffinity_np(pthread_self(), sizeof(before_), &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
  }
  ~OneCore() { pthread_setaffinity_np(pthread_self(), sizeof(before_), &before_); }
  OneCore(const OneCore&) = delete;
  OneCore& operator=(const OneCore&) = delete;

 private:
  cpu_set_t before_{};
};

// Counts and CPU times, because they do not depend on what else runs on the machine. With yields alone, Linux
// before 6.6 gives half of the core to the wait, and later ones return to it only after each slice of
// the other thread: about 290 times here, after 200 polls without a pause.
TEST(Backoff, AWaitPollsOftenBesideAThreadThatComputesAndTakesLittleFromIt) {
  const OneCore one_core;
  constexpr double kComputed = 0.4;
  std::atomic<bool> done{false};
  std::jthread computing([&] {
    compute(kComputed);
    done = true;
  });
  const double before = cpu_seconds();
  int64_t polls = 0;
  for (Backoff backoff; !done; backoff.pause()) ++polls;
  EXPECT_GT(polls, 700);
  EXPECT_LT(cpu_seconds() - before, 0.25 * kComputed);
}

// A wait that often makes progress does not sleep: it stays below the number of polls that it spins for.
TEST(Backoff, ProgressBeginsTheWaitAnew) {
  const OneCore one_core;
  std::atomic<bool> done{false};
  std::jthread computing([&] {
    while (!done) {
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  Backoff alone;
  for (int i = 0; i < 300; ++i) alone.pause();  // knows by now that the core is wanted
  const auto start = std::chrono::steady_clock::now();
  const double before = cpu_seconds();
  Backoff backoff;
  int64_t pauses = 0;
  for (;
       cpu_seconds() - before < 0.002 && std::chrono::steady_clock::now() - start < std::chrono::seconds(20);
       ++pauses) {
    Backoff::progress_made();
    backoff.pause();
  }
  done = true;
  EXPECT_GT(pauses, 1000) << "each pause slept";
}

}  // namespace
}  // namespace shardmark
