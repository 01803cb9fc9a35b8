// Tests the communicators that the process groups of a layout get, and which operations they start. A wrapper
// around the pt2pt transport counts them.
// RANKS 2 4
#include "executor/bound_program.h"
#include "strategies/messages.h"
#include "tests/mpi/layouts_fixture.h"

namespace shardmark {
namespace {

struct Counts {
  std::map<int, int64_t> splits, starts;  // by the number of ranks of the communicator
  int64_t for_messages = 0;               // number of splits
};

class Counting final : public Communicator {
 public:
  Counting(std::unique_ptr<Communicator> inner, std::shared_ptr<Counts> counts)
      : inner_(std::move(inner)), counts_(std::move(counts)) {}
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  at::Device device() const override { return inner_->device(); }
  std::string transport() const override { return inner_->transport(); }
  at::Tensor allocate(int64_t numel, at::ScalarType dtype) override { return inner_->allocate(numel, dtype); }

 protected:
  std::unique_ptr<Communicator> do_split(int color, int key, SplitUse use) override {
    auto part = inner_->split(color, key, use);
    ++counts_->splits[part->size()];
    counts_->for_messages += use == SplitUse::messages ? 1 : 0;
    return std::make_unique<Counting>(std::move(part), counts_);
  }
  std::unique_ptr<Operation> do_start(const Call& call) override {
    ++counts_->starts[size()];
    return std::make_unique<HandedOn>(inner_->start(call));
  }
  void do_progress() override { inner_->progress(); }

 private:
  class HandedOn final : public Operation {
   public:
    explicit HandedOn(Work work) : work_(std::move(work)) {}
    bool poll() override { return work_.poll(); }
    void wait() override { work_.wait(); }

   private:
    Work work_;
  };
  std::unique_ptr<Communicator> inner_;
  std::shared_ptr<Counts> counts_;
};

const std::string kSmallGpt2 = "gpt2(layers=2, width=24, heads=4, sequence=16, vocabulary=37)";

class GroupsOfLayouts : public Layouts {
 protected:
  std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();
  Counting counting_{make_communicator("pt2pt", world, at::kCPU), counts_};
};

// With one stage per rank, the data-parallel group of each stage has one rank, and so do the tensor-parallel
// and context-parallel groups.
TEST_F(GroupsOfLayouts, OfOneRankAskTheTransportForNothing) {
  for (const std::string strategy : {"ddp", "fsdp", "fsdp(shard=optimizer)", "zero3"}) {
    SCOPED_TRACE(strategy);
    *counts_ = {};
    train_layout({.model = kSmallGpt2, .strategy = strategy, .pipeline = comm->size()}, counting_, 1);
    EXPECT_EQ(counts_->splits.count(1), 0U);
    EXPECT_EQ(counts_->starts.count(1), 0U);
    EXPECT_GT(counts_->starts[comm->size()], 0);
  }
}

// Outputs and gradients between neighbouring stages use separate communicators. The exchange of the gradient
// of tied embeddings, between the first and the last stage, does not count as a message here.
TEST_F(GroupsOfLayouts, TellTheTransportWhichOnesCarryMessages) {
  const specs::ProcessGroup all{comm->size(), 1};
  const ProcessGroups process_groups(counting_, {{all, strategies::kFirstMessageLane},
                                                 {all, strategies::kFirstMessageLane + 1},
                                                 {all, strategies::lane_of_ends()},
                                                 {all, strategies::kBlockLane},
                                                 {all, strategies::kStrategyLane}});
  EXPECT_EQ(counts_->splits[comm->size()], 4) << "the last one is that of all ranks";
  EXPECT_EQ(counts_->for_messages, 2);
}

// A collective over one rank returns its input.
TEST_F(GroupsOfLayouts, OfOneRankMoveWhatTheyAreGiven) {
  const strategies::ProcessGroupUse one{{1, 1}, strategies::kStrategyLane};
  const ProcessGroups process_groups(counting_, {one});
  Communicator& alone_in_group = process_groups.of(one);
  EXPECT_EQ(alone_in_group.size(), 1);
  const at::Tensor in = at::arange(6, at::kDouble), out = at::zeros({6}, at::kDouble);
  alone_in_group.all_gather(out, in).wait();
  EXPECT_TRUE(out.equal(in));
  alone_in_group.all_reduce(out, ReduceOp::average).wait();
  EXPECT_TRUE(out.equal(in));
  out.zero_();
  alone_in_group.reduce_scatter(out, in, ReduceOp::sum).wait();
  EXPECT_TRUE(out.equal(in));
  out.zero_();
  alone_in_group.broadcast(out, in, 0).wait();
  EXPECT_TRUE(out.equal(in));
  EXPECT_TRUE(counts_->starts.empty());
}

}  // namespace
}  // namespace shardmark
