// Tests which pipeline layouts complete and which deadlock, for each order in which a transport executes
// operations.
#include "strategies/serving.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <set>

#include "pipeline_testing.h"
#include "plan/plan.h"

namespace shardmark::strategies {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMostStages = 8, kMostMicroBatches = 40;
using Shape = std::pair<int64_t, int64_t>;  // number of stages, number of micro-batches

std::set<Shape> waiting(const Choice& schedule, Serving serving) {
  std::set<Shape> shapes;
  for (int64_t stages = 2; stages <= kMostStages; ++stages)
    for (int64_t micro_batches = 1; micro_batches <= kMostMicroBatches; ++micro_batches)
      if (!schedule_waits(schedule, stages, micro_batches, serving).empty())
        shapes.insert({stages, micro_batches});
  return shapes;
}

Choice interleaved(int64_t chunks) { return {"interleaved", {{"chunks", chunks}}}; }

// With one chunk per rank, NCCL's orders cause no deadlock unless all operations are serialized. Then only
// GPipe completes if there are more than two micro-batches.
TEST(Serving, SchedulesOfOneChunkEndUnlessAllIsSerial) {
  for (const char* schedule : {"gpipe", "1f1b", "zero_bubble"}) {
    SCOPED_TRACE(schedule);
    for (const Serving serving : {Serving::own, Serving::launch_order})
      EXPECT_TRUE(waiting({schedule, {}}, serving).empty());
    const std::set<Shape> serial = waiting({schedule, {}}, Serving::serial);
    EXPECT_EQ(serial.empty(), schedule == std::string("gpipe"));
    EXPECT_EQ(serial.contains({2, 3}), schedule != std::string("gpipe"));
    EXPECT_FALSE(serial.contains({2, 2}));
  }
}

TEST(Serving, ThereAndBackEndsUnlessAllIsSerial) {
  const Choice there_and_back{"zero_bubble_v", {}};
  for (const Serving serving : {Serving::own, Serving::launch_order})
    EXPECT_TRUE(waiting(there_and_back, serving).empty());
  EXPECT_TRUE(waiting(there_and_back, Serving::serial).contains({2, 3}));
}

// The lists are from a simulation of NCCL's streams and contain only layouts with unequal rounds. They end
// where they do because at most 40 micro-batches are tried. They are the same for any number of chunks.
TEST(Serving, InterleavedWaitsWhereItsRoundsAreUnequal) {
  const std::set<Shape> under_launch_order = {
      {4, 11}, {5, 13}, {5, 14}, {5, 19}, {6, 15}, {6, 16}, {6, 17}, {6, 22}, {6, 23}, {6, 29}, {7, 17},
      {7, 18}, {7, 19}, {7, 20}, {7, 25}, {7, 26}, {7, 27}, {7, 33}, {7, 34}, {8, 19}, {8, 20}, {8, 21},
      {8, 22}, {8, 23}, {8, 28}, {8, 29}, {8, 30}, {8, 31}, {8, 37}, {8, 38}, {8, 39}};
  const std::set<Shape> under_own = {{6, 17}, {7, 19}, {7, 20}, {8, 21}, {8, 22}, {8, 23}, {8, 31}};
  for (int64_t chunks = 2; chunks <= 4; ++chunks) {
    EXPECT_EQ(waiting(interleaved(chunks), Serving::launch_order), under_launch_order) << chunks;
    EXPECT_EQ(waiting(interleaved(chunks), Serving::own), under_own) << chunks;
    EXPECT_EQ(waiting(interleaved(chunks), Serving::serial).size(),
              static_cast<size_t>((kMostStages - 1) * kMostMicroBatches));
  }
}

Point pipeline_of(const Choice& schedule, int64_t stages, int64_t micro_batches) {
  Point point;
  point.workload = "training";
  TrainingPoint& t = point.training;
  t.model = resolve({"mlp", {{"layers", int64_t{20}}}}, specs::model_spec("mlp").options, "model");
  t.optimizer = {"sgd", {{"lr", 0.1}, {"momentum", 0.0}, {"weight_decay", 0.0}}};
  t.data = {"synthetic", {{"size", 64}}};
  t.strategy = {"single", {}};
  t.batch_size = 1;
  t.pipeline = point.ranks = stages;
  t.accumulation = micro_batches;
  t.schedule = schedule;
  return point;
}

TEST(Serving, WhatWouldWaitIsImpossibleWithWhatToTakeInstead) {
  EXPECT_EQ(
      layout_impossible(pipeline_of(interleaved(2), 4, 11)),
      "stages of interleaved(chunks=2) with 11 micro-batches would wait for each other for ever on NCCL; "
      "take accumulation 8 or 12, a multiple of pipeline 4");
  for (const int64_t micro_batches : {1, 3, 8, 10, 12})
    EXPECT_EQ(layout_impossible(pipeline_of(interleaved(2), 4, micro_batches)), "") << micro_batches;
  const Choice one{"1f1b", {}};
  EXPECT_EQ(layout_impossible(pipeline_of(one, 4, 11)), "");
  for (const Serving serving : {Serving::own, Serving::launch_order})
    EXPECT_EQ(serving_impossible(pipeline_of(one, 4, 8), serving), "");
  EXPECT_EQ(serving_impossible(pipeline_of({"gpipe", {}}, 4, 8), Serving::serial), "");
  EXPECT_EQ(serving_impossible(pipeline_of(one, 1, 8), Serving::serial), "");
  EXPECT_THAT(serving_impossible(pipeline_of(one, 4, 8), Serving::serial),
              HasSubstr("NCCL runs one operation after the other here; take pipeline_schedule gpipe, or NCCL "
                        "2.26 and CUDA 12.3 or newer"));
}

// The plan has the same reasons as a sweep.
TEST(Serving, APlanKnowsTheOrderOfItsTransport) {
  const Suite suite = parse_suite(
      "training: {model: mlp, strategy: ddp, batch_size: 1, ranks: 2, pipeline: 2, accumulation: 4, "
      "pipeline_schedule: [gpipe, 1f1b]}",
      "s.yaml");
  for (const Serving serving : {Serving::own, Serving::launch_order, Serving::serial}) {
    World world{2};
    world.serving = serving;
    const auto plan = make_plan(suite, world);
    ASSERT_EQ(plan.size(), 2u);
    EXPECT_EQ(plan[0].impossible, "");
    EXPECT_EQ(plan[1].impossible.empty(), serving != Serving::serial) << plan[1].impossible;
  }
}

}  // namespace
}  // namespace shardmark::strategies
