// Orders of a pipeline that do not make a complete training step are refused. The error names the stage and
// the action.
#include <gmock/gmock.h>

#include "pipeline_testing.h"

namespace shardmark::strategies {
namespace {

std::vector<PipelineOrder> four_ranks(const char* schedule, int64_t chunks = 1) {
  return PipelineLayout{schedule, 4, 8, chunks}.orders();
}

size_t place_of(const PipelineOrder& order, const PipelineAction& action) {
  return static_cast<size_t>(std::find(order.begin(), order.end(), action) - order.begin());
}

TEST(WrongPipelineOrders, AreRefusedByStageAndAction) {
  auto orders = four_ranks("1f1b");
  std::erase(orders[3], PipelineAction{Pass::backward, 0, 3});
  EXPECT_EQ(wrong_between(orders), "stage 3 never does backward of micro-batch 3, for which stage 2 waits");
  EXPECT_THROW(timeline(orders), ContractError);

  orders = four_ranks("1f1b");
  std::erase(orders[3], PipelineAction{Pass::forward, 0, 7});
  EXPECT_EQ(wrong_between(orders), "stage 3 never does forward of micro-batch 7");

  orders = four_ranks("interleaved", 2);
  std::erase(orders[3], PipelineAction{Pass::forward, 0, 5});
  EXPECT_EQ(wrong_between(orders),
            "stage 3 never does forward of micro-batch 5 through chunk 0, for which stage 0 waits");

  orders = four_ranks("1f1b");
  orders[1].insert(orders[1].begin() + 5, orders[1][2]);
  EXPECT_EQ(wrong_between(orders), "stage 1: forward of micro-batch 2 comes twice");

  orders = four_ranks("gpipe");
  std::swap(orders[2][place_of(orders[2], {Pass::forward, 0, 6})],
            orders[2][place_of(orders[2], {Pass::backward, 0, 6})]);
  EXPECT_EQ(wrong_between(orders),
            "stage 2: backward of micro-batch 6 cannot begin: its forward comes later");

  orders = four_ranks("zero_bubble");
  std::swap(orders[0][4], orders[0][5]);
  EXPECT_EQ(wrong_between(orders),
            "stage 0: backward_weight of micro-batch 0 cannot begin: its backward_input comes later");
  orders = four_ranks("zero_bubble");
  orders[0].pop_back();
  EXPECT_EQ(wrong_between(orders), "stage 0 never does backward_weight of micro-batch 7");
  orders[0].push_back({Pass::backward, 0, 7});
  EXPECT_EQ(wrong_between(orders),
            "stage 0: backward_input of micro-batch 7 is part of its backward, which comes as well");
}

TEST(WrongPipelineOrders, AreDeadlocksWhereEachIsRightAlone) {
  // Stage 0 waits for a gradient before it sends the micro-batch that stage 1 waits for first.
  const std::vector<PipelineOrder> orders = {
      {{Pass::forward, 0, 0}, {Pass::backward, 0, 0}, {Pass::forward, 0, 1}, {Pass::backward, 0, 1}},
      {{Pass::forward, 0, 0}, {Pass::forward, 0, 1}, {Pass::backward, 0, 0}, {Pass::backward, 0, 1}}};
  EXPECT_EQ(
      wrong_between(orders),
      "stage 0: backward of micro-batch 0 cannot begin before stage 1's backward of micro-batch 0, which "
      "comes after stage 1's forward of micro-batch 1; that cannot begin before stage 0's forward of "
      "micro-batch 1, which comes after stage 0's backward of micro-batch 0: a deadlock");
  auto interleaved = four_ranks("interleaved", 2);
  std::swap(interleaved[0][0], interleaved[0][4]);  // now the second chunk comes before the first
  EXPECT_THAT(wrong_between(interleaved),
              testing::StartsWith("stage 0: forward of micro-batch 0 through chunk 1 "
                                  "cannot begin before stage 3's forward of "
                                  "micro-batch 0 through chunk 0"));
  EXPECT_EQ(
      wrong_between(
          {{{Pass::forward, 1, 0}, {Pass::forward, 0, 0}, {Pass::backward, 1, 0}, {Pass::backward, 0, 0}}}),
      "stage 0: forward of micro-batch 0 through chunk 1 cannot begin before stage 0's forward of "
      "micro-batch 0 through chunk 0, which comes after stage 0's forward of micro-batch 0 through chunk "
      "1: a deadlock");
}

// A lost or duplicated action is always found. If two actions are swapped, the error is found or the new
// order works.
TEST(WrongPipelineOrders, AreFoundAtRandom) {
  std::mt19937 random(11);
  int num_deadlocks = 0, num_possible = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    const PipelineLayout layout = random_layout(random);
    SCOPED_TRACE(layout.text());
    std::vector<PipelineOrder> orders = layout.orders();
    const Placement placement = placement_of(layout.schedule);
    const size_t rank = random() % orders.size();
    PipelineOrder& order = orders[rank];
    const auto place = order.begin() + static_cast<int64_t>(random() % order.size());
    const std::string stage = "stage " + std::to_string(rank), name = describe(*place, layout.chunks);
    if (trial % 3 == 0) {
      order.erase(place);
      EXPECT_THAT(wrong_between(orders, placement), testing::StartsWith(stage + " never does "));
    } else if (trial % 3 == 1) {
      order.insert(place, *place);
      EXPECT_EQ(wrong_between(orders, placement), stage + ": " + name + " comes twice");
    } else {
      std::iter_swap(place, order.begin() + static_cast<int64_t>(random() % order.size()));
      const std::string wrong = wrong_between(orders, placement);
      if (wrong.empty()) expect_possible(timeline(orders, {}, placement), placement);
      num_possible += wrong.empty();
      num_deadlocks += wrong.ends_with(": a deadlock");
      EXPECT_TRUE(wrong.empty() || wrong.ends_with(": a deadlock") || wrong.ends_with(" comes later"))
          << wrong;
    }
  }
  EXPECT_GT(num_deadlocks, 50);
  EXPECT_GT(num_possible, 50);
}

}  // namespace
}  // namespace shardmark::strategies
