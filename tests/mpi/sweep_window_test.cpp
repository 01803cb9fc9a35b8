// Tests windows of steps: a rank that comes late must not affect the times of the others.
// RANKS 2
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <thread>

#include "sweep/window.h"

namespace shardmark {
namespace {

TEST(WindowTimer, FirstStepDoesNotWaitForARankThatCameLate) {
  const HostGroup world = HostGroup::world();
  const std::unique_ptr<Communicator> comm = make_communicator("pt2pt", world, at::kCPU);
  Point point;
  point.workload = "collective";
  point.collective = {"all_reduce", "float32", "sum", 4096, true};
  const Resources resources;
  ReferenceCache references;
  HeartbeatPage page{};
  Heartbeat heartbeat{page};
  const WorkloadContext context{point, world, *comm, resources, references, heartbeat};
  const std::unique_ptr<Workload> workload = make_collective(context);
  workload->allocate();
  WindowTimer timer(context, *workload);
  Window window;
  ASSERT_TRUE(timer.run(5, window).ok());  // opens connections

  const auto begin = std::chrono::steady_clock::now();
  if (world.rank() == 0) std::this_thread::sleep_for(std::chrono::seconds(1));
  ASSERT_TRUE(timer.run(5, window).ok());
  const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - begin;
  const std::vector<double>& steps = window.phases.front();
  ASSERT_EQ(steps.size(), 5U);
  EXPECT_LT(steps.front(), whole.count() / 2) << "the wait for rank 0 is most of all the time";
  EXPECT_TRUE(is_accounted(std::accumulate(steps.begin(), steps.end(), 0.0), window.wall_s));
}

}  // namespace
}  // namespace shardmark
