// Tests that need two or more GPUs, so that ranks share nothing but NCCL.
#include <gmock/gmock.h>

#include "sweep/communicators.h"
#include "tests/gpu/collective_checks.h"
#include "tests/gpu/gpu_fixture.h"

namespace shardmark {
namespace {

class SeveralGpus : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    if (world_.size() < 2) GTEST_SKIP() << "one rank: two GPUs or more are needed";
    if (is_emulated()) GTEST_SKIP() << "ranks share one GPU by NCCL_HOSTID: two GPUs or more are needed";
  }
};

// A process group uses memory that another communicator allocated. It must be registered with the group from
// its first operation on.
TEST_F(SeveralGpus, ProcessGroupsRegisterTheMemoryOfAllRanks) {
  static_cast<void>(comm_->take_copied());
  const at::Tensor tensor = comm_->allocate(1 << 22, at::kFloat);
  tensor.fill_(1);
  for (int round = 0; round < 3; ++round) {
    const auto process_group = comm_->split(0, comm_->rank());
    process_group->all_reduce(tensor, ReduceOp::max).wait();
    EXPECT_TRUE(tensor.eq(1).all().item<bool>());
  }
  EXPECT_EQ(comm_->take_copied(), "");
}

TEST_F(SeveralGpus, SplitsAsMpiDoes) {
  checks::split_in_halves(*comm_);
  const auto turned = comm_->split(0, -comm_->rank());
  EXPECT_EQ(turned->rank(), turned->size() - 1 - comm_->rank());
  checks::exact(*turned, {1, 1000, 300001});
}

// Several communicators have operations in flight, and none of them waits for another: Note [Order of
// launches].
TEST_F(SeveralGpus, CommunicatorsRunSideBySide) {
  std::vector<std::unique_ptr<Communicator>> comms;
  std::vector<at::Tensor> tensors;
  for (int i = 0; i < 4; ++i) {
    comms.push_back(comm_->split(0, comm_->rank()));
    tensors.push_back(comms.back()->allocate(1 << 20, at::kFloat).fill_(1));
  }
  std::vector<Work> works;
  for (int round = 0; round < 50; ++round)
    for (size_t i = 0; i < comms.size(); ++i)
      works.push_back(comms[i]->all_reduce(tensors[i], ReduceOp::average));
  for (Work& work : works) work.wait();
  for (const at::Tensor& tensor : tensors) EXPECT_TRUE(tensor.eq(1).all().item<bool>());
}

// There are more operations in flight than PyTorch's pool has streams.
TEST_F(SeveralGpus, StagesOverlapWithoutBound) {
  const auto staged = make_communicator("hierarchical(form=leader, ranks_per_node=1)", world_, device_);
  std::vector<Call> calls;
  std::vector<Work> works;
  for (int64_t i = 0; i < 80; ++i) {
    calls.push_back(checks::plain(*staged, Collective::all_reduce, 1000 + i));
    fill(*staged, calls.back(), i);
  }
  for (const Call& call : calls) works.push_back(staged->start(call));
  for (size_t i = works.size(); i-- > 0;) works[i].wait();
  for (size_t i = 0; i < calls.size(); ++i)
    EXPECT_EQ(num_wrong(*staged, calls[i], static_cast<int64_t>(i)), 0);
}

// Measures the memory of the device, because NCCL's memory for channels and connections counts.
TEST_F(SeveralGpus, MemoryAtTheStartOfAPointDoesNotDependOnTheOneBefore) {
  const RunOptions options{"nccl", device_};
  HeartbeatPage page{};
  Heartbeat heartbeat{page};
  PointCommunicators communicators(world_, options, MovedBy::caller, heartbeat);
  const auto at_start = [&] {
    communicators.get(world_.size(), "nccl", /*unused=*/true);
    empty_caches(device_);
    return device_used_bytes(device_);
  };
  const auto use = [&](const std::string& transport) {
    auto& current = communicators.get(world_.size(), transport, false);
    checks::exact(*current.comm, {1000});
  };
  use("nccl");  // loads what libraries load once
  const int64_t first = at_start();
  use("nccl");
  const int64_t after_nccl = at_start();
  use("hierarchical(form=leader, ranks_per_node=1)");
  const int64_t after_staged = at_start();
  EXPECT_EQ(after_nccl, first);
  EXPECT_EQ(after_staged, first);
}

}  // namespace
}  // namespace shardmark
