// Tests which communicator a point gets, and that earlier points do not affect it.
// RANKS 1 2 3
#include <gtest/gtest.h>

#include "base/error.h"
#include "device/meter.h"
#include "sweep/communicators.h"

namespace shardmark {
namespace {

class PointCommunicatorsTest : public ::testing::Test {
 protected:
  static constexpr const char* kStaged = "hierarchical(form=leader, ranks_per_node=1)";

  // Uses a communicator as a point may: with different operations, also on process groups.
  static void use(PointCommunicators::Current& current) {
    if (!current.comm) return;
    const at::Tensor tensor = at::ones({1 << 20});
    current.comm->all_reduce(tensor, ReduceOp::sum).wait();
    current.comm->split(0, 0)->all_reduce(tensor, ReduceOp::max).wait();
  }
  static int64_t num_operations(const PointCommunicators::Current& current) {
    return current.comm ? current.comm->traffic().num_operations : 0;
  }
  // Returns the memory at the beginning of a point that measures memory.
  int64_t bytes_at_start() {
    communicators_.get(world_.size(), "pt2pt", /*unused=*/true);
    return meter::read().total;
  }

  HostGroup world_ = HostGroup::world();
  RunOptions options_{"pt2pt", at::kCPU};
  HeartbeatPage page_{};
  Heartbeat heartbeat_{page_};
  PointCommunicators communicators_{world_, options_, MovedBy::caller, heartbeat_};
};

TEST_F(PointCommunicatorsTest, MemoryDoesNotDependOnWhatRanBefore) {
  const int64_t at_first = bytes_at_start();
  for (const std::string transport : {"pt2pt", kStaged}) {
    for (const int64_t ranks : {int64_t{1}, int64_t{world_.size()}}) {
      use(communicators_.get(ranks, transport, false));
      use(communicators_.get(ranks, transport, true));
      EXPECT_EQ(bytes_at_start(), at_first) << "after " << transport << " on " << ranks;
    }
  }
}

TEST_F(PointCommunicatorsTest, AreKeptWhileNobodyMinds) {
  auto& first = communicators_.get(world_.size(), kStaged, false);
  use(first);
  const int64_t used = num_operations(first);
  EXPECT_GT(used, 0);
  EXPECT_EQ(num_operations(communicators_.get(world_.size(), kStaged, false)), used) << "the same";
  EXPECT_EQ(num_operations(communicators_.get(world_.size(), kStaged, true)), 0) << "a new one";
  use(communicators_.get(world_.size(), "pt2pt", false));
  EXPECT_EQ(num_operations(communicators_.get(world_.size(), kStaged, false)), 0) << "the other has ended";
}

TEST_F(PointCommunicatorsTest, LeaveRanksOut) {
  const auto& one = communicators_.get(1, "pt2pt", true);
  EXPECT_EQ(one.comm != nullptr, world_.rank() == 0);
  EXPECT_EQ(one.group.size(), world_.rank() == 0 ? 1 : 0);
  EXPECT_EQ(one.comm ? one.comm->size() : 1, 1);
}

TEST_F(PointCommunicatorsTest, RefuseTransportsOfOtherDevices) {
  EXPECT_THROW(communicators_.get(world_.size(), "nccl", true), UsageError);
}

}  // namespace
}  // namespace shardmark
