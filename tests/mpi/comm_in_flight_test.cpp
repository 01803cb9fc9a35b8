// RANKS 1
// Tests operations of a device that runs behind its host, with a simulated device: when they count as
// complete, and what the host notices while it waits.
#include <gtest/gtest.h>

#include "base/error.h"
#include "comm/communicator.h"
#include "comm/nccl/check.h"
#include "comm/watch/heartbeat.h"
#include "comm/wrappers/checked.h"
#include "comm/wrappers/stages.h"
#include "device/device.h"

namespace shardmark {
namespace {

struct ByHand final : Ending {
  bool is_reached() override { return reached; }
  bool reached = false;
};

// A communicator whose operations complete when the test says so.
class Ahead final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  at::Device device() const override { return at::kCPU; }
  std::string transport() const override { return "ahead"; }
  at::Tensor allocate(int64_t numel, at::ScalarType dtype) override { return at::zeros({numel}, dtype); }
  std::shared_ptr<void> in_order() override { return order; }

  Work reduce(const std::shared_ptr<ByHand>& end) {
    next = end;
    return all_reduce(tensor, ReduceOp::sum);
  }

  at::Tensor tensor = at::zeros({4});
  std::shared_ptr<ByHand> next;
  std::shared_ptr<int> order = std::make_shared<int>(0);
  int num_progress = 0;
  bool is_down = false;

 protected:
  class Enqueued final : public Operation {
   public:
    explicit Enqueued(std::shared_ptr<Ending> ending) : ending_(std::move(ending)) {}
    bool poll() override { return true; }
    void wait() override {}
    std::shared_ptr<Ending> ending() const override { return ending_; }

   private:
    std::shared_ptr<Ending> ending_;
  };
  std::unique_ptr<Communicator> do_split(int, int, SplitUse) override { return nullptr; }
  std::unique_ptr<Operation> do_start(const Call&) override { return std::make_unique<Enqueued>(next); }
  void do_progress() override {
    ++num_progress;
    if (is_down) throw SystemError("a peer has closed the connection");
  }
};

class InFlight : public ::testing::Test {
 protected:
  InFlight() {
    heartbeat_.begin_point("a test");
    comm_.set_heartbeat(&heartbeat_);
  }
  int64_t completed() const { return page_.completed.number; }
  int64_t awaited() const { return page_.awaited.number; }

  HeartbeatPage page_{};
  Heartbeat heartbeat_{page_};
  Ahead comm_;
};

TEST_F(InFlight, IsCompleteWhenTheDeviceIsNotWhenEnqueued) {
  const auto first = std::make_shared<ByHand>(), both = std::make_shared<ByHand>();
  comm_.reduce(first).wait();
  comm_.reduce(both).wait();
  comm_.reduce(both).wait();  // all in one launch
  comm_.progress();
  EXPECT_EQ(page_.started.number, 3);
  EXPECT_EQ(completed(), 0) << "the host has only enqueued it";
  both->reached = true;  // out of order: the operations before it are not complete
  comm_.progress();
  EXPECT_EQ(completed(), 0);
  first->reached = true;
  comm_.progress();
  EXPECT_EQ(completed(), 3);
  EXPECT_EQ(awaited(), 0);
}

TEST_F(InFlight, AWaitForTheDeviceIsForTheFirst) {
  const auto first = std::make_shared<ByHand>(), second = std::make_shared<ByHand>();
  comm_.reduce(first).wait();
  comm_.reduce(second).wait();
  const WhileWaiting looks([&] { comm_.look(); });
  std::vector<int64_t> waited_for;
  wait_for_device([&] {
    if (waited_for.empty() || waited_for.back() != awaited()) waited_for.push_back(awaited());
    if (awaited() == 1) first->reached = true;
    if (awaited() == 2) second->reached = true;
    return second->reached;
  });
  EXPECT_EQ(waited_for, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(completed(), 2);
  EXPECT_EQ(awaited(), 0);
}

TEST_F(InFlight, AStageThatBeginsEndsTheWait) {
  comm_.reduce(std::make_shared<ByHand>()).wait();
  comm_.look();
  EXPECT_EQ(awaited(), 1);
  heartbeat_.stage("data");
  EXPECT_EQ(awaited(), 0);
}

TEST_F(InFlight, AFailureIsNoticedWhileTheHostWaits) {
  const WhileWaiting looks([&] { comm_.look(); });
  int num_asked = 0;
  const auto wait = [&] {
    wait_for_device([&] {
      comm_.is_down = ++num_asked > 3;
      return false;
    });
  };
  EXPECT_THROW(wait(), SystemError);
}

TEST(Wrappers, AskAllCommunicatorsForFailures) {
  Ahead flat, across;
  StageQueue queue({&flat, &across});
  queue.progress();
  EXPECT_EQ(flat.num_progress, 1);
  EXPECT_EQ(across.num_progress, 1);
  across.is_down = true;
  EXPECT_THROW(queue.wait_until([] { return false; }), SystemError);
}

TEST(Wrappers, HandOnInOrder) {
  auto inner = std::make_unique<Ahead>();
  const std::shared_ptr<void> order = inner->order;
  EXPECT_EQ(make_checked(std::move(inner), HostGroup::world())->in_order(), order);
}

TEST(GpuCheck, AcceptsNothingButSuccess) {
  GPU_CHECK(ncclSuccess);
  EXPECT_THROW(GPU_CHECK(ncclInProgress), SystemError) << "communicators block";
  EXPECT_THROW(GPU_CHECK(ncclSystemError), SystemError);
}

}  // namespace
}  // namespace shardmark
