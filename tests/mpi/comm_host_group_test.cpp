// RANKS 1 2 4
// Tests communication of values between hosts: agreement, gathers of rows and texts, split groups, and a
// barrier that sleeps.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "comm/host_group.h"

namespace shardmark {
namespace {

double used_cpu_s() {
  rusage usage = {};
  getrusage(RUSAGE_THREAD, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

TEST(HostGroup, Agrees) {
  const HostGroup world = HostGroup::world();
  const int n = world.size();
  EXPECT_EQ(world.max(int64_t{world.rank()}), n - 1);
  EXPECT_EQ(world.max(-1.0 * world.rank()), 0.0);
  EXPECT_EQ(world.sum(world.rank() + 1.0), n * (n + 1) / 2);
  EXPECT_EQ(world.broadcast(int64_t{world.rank()} + 40, n - 1), n + 39);
  EXPECT_EQ(world.broadcast("rank " + std::to_string(world.rank()), n - 1), "rank " + std::to_string(n - 1));
  EXPECT_EQ(world.broadcast(std::string(), 0), "");
}

TEST(HostGroup, GathersOnRankZero) {
  const HostGroup world = HostGroup::world();
  const double rank = world.rank();
  const std::vector<double> rows = world.gather(std::vector<double>{rank, 10 * rank});
  const std::vector<std::string> texts = world.gather(std::string(static_cast<size_t>(world.rank()), 'x'));
  if (world.rank() != 0) {
    EXPECT_TRUE(rows.empty());
    EXPECT_TRUE(texts.empty());
    return;
  }
  for (int r = 0; r < world.size(); ++r) {
    EXPECT_EQ(rows[static_cast<size_t>(2 * r + 1)], 10.0 * r);
    EXPECT_EQ(texts[static_cast<size_t>(r)], std::string(static_cast<size_t>(r), 'x'));
  }
}

TEST(HostGroup, Splits) {
  const HostGroup world = HostGroup::world();
  const HostGroup first = world.split(world.rank() == 0 ? 0 : -1, 0);
  EXPECT_EQ(first.size(), world.rank() == 0 ? 1 : 0);
  HostGroup turned = world.split(0, -world.rank());
  EXPECT_EQ(turned.rank(), world.size() - 1 - world.rank());
  const HostGroup moved = std::move(turned);
  EXPECT_EQ(moved.max(int64_t{moved.rank()}), world.size() - 1);
}

// Ranks that take no part in a point wait for a long time. They must not use a core meanwhile.
TEST(HostGroup, SleepingBarrierUsesNoProcessor) {
  const HostGroup world = HostGroup::world();
  world.barrier();
  const double before_s = used_cpu_s();
  const auto pause = std::chrono::seconds(2);
  if (world.rank() == 0) std::this_thread::sleep_for(pause);
  const auto begin = std::chrono::steady_clock::now();
  world.sleep_barrier();
  const double waited_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (world.rank() != 0) {
    EXPECT_GT(waited_s, 0.2);
    EXPECT_LT(used_cpu_s() - before_s, 0.2 * waited_s);
  }
}

}  // namespace
}  // namespace shardmark
