// RANKS 1 2 3
// Ranks that start different operations all fail, and the error names the ranks that differ.
#include <gmock/gmock.h>

#include "../gpu/collective_checks.h"
#include "comm/wrappers/checked.h"

namespace shardmark {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class CheckedTest : public ::testing::Test {
 protected:
  HostGroup world_ = HostGroup::world();
  std::unique_ptr<Communicator> comm_ =
      make_checked(make_communicator("pt2pt", world_, at::kCPU), world_.split(0, world_.rank()));
  bool is_last() const { return world_.rank() == world_.size() - 1; }

  // Returns the error on all ranks if they start different operations.
  template <class Start>
  std::string told(Start&& start) {
    std::string text;
    try {
      start().wait();
    } catch (const MismatchedOperation& error) {
      text = error.what();
    }
    EXPECT_EQ(world_.broadcast(text, 0), text);
    return text;
  }
};

TEST_F(CheckedTest, ChangesNothingWhereRanksAgree) {
  checks::exact(*comm_, {0, 1, 1000});
  checks::out_of_order(*comm_);
  checks::grouped(*comm_);
  checks::split_in_halves(*comm_);
  checks::traffic(*comm_);
}

TEST_F(CheckedTest, NamesWhoStartsSomethingElse) {
  if (world_.size() == 1) GTEST_SKIP() << "one rank always agrees with itself";
  const at::Tensor small = at::ones({4 * world_.size()}), large = at::ones({16 * world_.size()});
  const std::string last = "rank " + std::to_string(world_.size() - 1) + " on ";
  const auto expect_last = [&](const std::string& text, const std::string& what) {
    EXPECT_THAT(text, HasSubstr("differs between ranks: "));
    EXPECT_THAT(text, HasSubstr(last));
    EXPECT_THAT(text, HasSubstr(what));
  };
  expect_last(told([&] {
                return is_last() ? comm_->all_to_all(at::empty_like(small), small)
                                 : comm_->all_reduce(small, ReduceOp::sum);
              }),
              "all_to_all of ");
  expect_last(told([&] { return comm_->all_reduce(is_last() ? large : small, ReduceOp::sum); }),
              std::to_string(64 * world_.size()) + " B Float");
  expect_last(told([&] { return comm_->all_reduce(is_last() ? small.to(at::kInt) : small, ReduceOp::sum); }),
              " B Int");
  expect_last(told([&] { return comm_->all_reduce(small, is_last() ? ReduceOp::max : ReduceOp::sum); }),
              "all_reduce (max)");
  expect_last(told([&] { return comm_->broadcast(small, is_last() ? 1 : 0); }), "broadcast from 1");
  // None of these operations has started, so the ranks can still communicate.
  const at::Tensor sum = at::ones({3});
  comm_->all_reduce(sum, ReduceOp::sum).wait();
  EXPECT_EQ(sum[0].item<float>(), static_cast<float>(world_.size()));
}

TEST_F(CheckedTest, NumbersAreOfTheCommunicatorAndRanksOfTheWorld) {
  if (world_.size() < 3) GTEST_SKIP() << "needs a group of two without rank 0";
  const auto part = comm_->split(world_.rank() == 0 ? 0 : 1, world_.rank());
  const at::Tensor tensor = at::ones({8});
  part->all_reduce(tensor, ReduceOp::sum).wait();
  std::string text;
  try {
    (world_.rank() == 2 ? part->reduce(tensor, 0, ReduceOp::sum) : part->all_reduce(tensor, ReduceOp::sum))
        .wait();
  } catch (const MismatchedOperation& error) {
    text = error.what();
  }
  if (world_.rank() == 0) return;
  EXPECT_THAT(text, StartsWith("operation #2 differs between ranks: "));
  EXPECT_THAT(text, HasSubstr("rank 1 on "));
  EXPECT_THAT(text, HasSubstr("rank 2 on "));
}

// A rank compares its next operation while another rank still waits for the previous one, of any
// communicator.
TEST_F(CheckedTest, WhatIsInFlightMovesWhileRanksCompare) {
  const auto part = comm_->split(0, world_.rank());
  const at::Tensor first = at::ones({1 << 20}), second = at::ones({5});
  for (int round = 0; round < 20; ++round) {
    Work in_flight = comm_->all_reduce(first, ReduceOp::max);
    if (is_last()) in_flight.wait();
    part->all_reduce(second, ReduceOp::max).wait();
    in_flight.wait();
  }
  EXPECT_EQ(first.max().item<float>(), 1);
}

TEST(CheckedDifference, TheFewestRanksComeFirst) {
  EXPECT_EQ(difference({{0, "node0", "a"}, {1, "node0", "a"}, {2, "node1", "a"}}), "");
  EXPECT_EQ(difference({{0, "node0", "all_gather of 4 B"},
                        {1, "node0", "all_gather of 4 B"},
                        {2, "node1", "reduce of 4 B"},
                        {3, "node1", "all_gather of 4 B"}}),
            "rank 2 on node1 starts reduce of 4 B, ranks 0-1, 3 all_gather of 4 B");
}

}  // namespace
}  // namespace shardmark
