// How long a process has existed.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/clock.h"

namespace shardmark {
namespace {

// The kernel counts starts in ticks of 10 ms.
constexpr std::chrono::milliseconds kTicks{50};

TEST(ProcessAge, BeginsAnewWithAProcess) {
  std::this_thread::sleep_for(kTicks);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const double begin = now_s();
  const pid_t child = ::fork();
  if (child == 0) {
    const double age = process_age_s();
    const bool written = ::write(ends[1], &age, sizeof age) == sizeof age;
    std::_Exit(written ? 0 : 1);
  }
  double age = -1;
  ASSERT_EQ(::read(ends[0], &age, sizeof age), static_cast<ssize_t>(sizeof age));
  const double took_s = now_s() - begin;
  ::waitpid(child, nullptr, 0);
  for (const int end : ends) ::close(end);
  EXPECT_GE(age, 0);
  EXPECT_LE(age, took_s + 0.02) << "it is not older than the time since the fork";
  EXPECT_GT(process_age_s(), age) << "its parent is older";
}

TEST(ProcessAge, Grows) {
  const double before = process_age_s();
  std::this_thread::sleep_for(kTicks);
  EXPECT_GT(process_age_s(), before);
}

}  // namespace
}  // namespace shardmark
