// If a transport could not register memory, this is recorded in the point that used the memory.
// RANKS 1 3
#include <gtest/gtest.h>

#include "sweep/measure.h"

namespace shardmark {
namespace {

class HandedOn final : public Operation {
 public:
  explicit HandedOn(Work work) : work_(std::move(work)) {}
  bool poll() override { return work_.poll(); }
  void wait() override { work_.wait(); }

 private:
  Work work_;
};

// Wraps another communicator. Its memory cannot be registered on the last rank.
class Copying final : public Communicator {
 public:
  explicit Copying(std::unique_ptr<Communicator> inner) : inner_(std::move(inner)) {}
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  at::Device device() const override { return inner_->device(); }
  std::string transport() const override { return inner_->transport(); }
  at::Tensor allocate(int64_t numel, at::ScalarType dtype) override {
    if (rank() == size() - 1) failure_ = "4.00 KiB could not be registered";
    return inner_->allocate(numel, dtype);
  }
  std::string take_copied() override { return std::exchange(failure_, ""); }

 protected:
  std::unique_ptr<Communicator> do_split(int color, int key, SplitUse use) override {
    return inner_->split(color, key, use);
  }
  std::unique_ptr<Operation> do_start(const Call& call) override {
    return std::make_unique<HandedOn>(inner_->start(call));
  }
  void do_progress() override { inner_->progress(); }

 private:
  std::unique_ptr<Communicator> inner_;
  std::string failure_;
};

TEST(CopiedMemory, IsAFactOfThePoint) {
  const HostGroup world = HostGroup::world();
  Copying copying(make_communicator("pt2pt", world, at::kCPU));
  const auto plain = make_communicator("pt2pt", world, at::kCPU);
  Point point;
  point.workload = "collective";
  point.collective = {"all_reduce", "float32", "sum", 4096, true};
  const Resources resources;
  ReferenceCache references;
  HeartbeatPage page{};
  Heartbeat heartbeat{page};
  const auto reason_on = [&](Communicator& comm) {
    const Record record = measure_point({point, world, comm, resources, references, heartbeat});
    EXPECT_EQ(record.outcome, Outcome::ok);
    return record.reason;
  };
  EXPECT_EQ(reason_on(copying),
            "rank " + std::to_string(world.size() - 1) + ": 4.00 KiB could not be registered");
  EXPECT_EQ(copying.take_copied(), "") << "of the next point";
  EXPECT_EQ(reason_on(*plain), "");
}

}  // namespace
}  // namespace shardmark
