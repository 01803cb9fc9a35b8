// The event simulation on programs whose times can be added up by hand; programs as series.
#include <gtest/gtest.h>

#include "analysis/predict/simulate.h"
#include "base/error.h"

namespace shardmark {
namespace {

using What = laws::Moment::What;

// Two blocks, one operation after each block's backward, both waited for before the update.
laws::Program two_buckets() {
  laws::Program program;
  program.add(What::data);
  program.add(What::forward, 0);
  program.add(What::forward, 1);
  program.add(What::backward, 1);
  program.start({"all_reduce", 100, 4, 1});
  program.add(What::backward, 0);
  program.start({"all_reduce", 50, 4, 1});
  program.add(What::wait, 0);
  program.add(What::wait, 1);
  program.add(What::update);
  return program;
}
const ComputeTimes kTimes{1, {2, 3}, {4, 6}, 5};

TEST(Simulate, WithoutProgressAllCommunicationIsExposed) {
  const SimulatedStep step = simulate(two_buckets(), kTimes, {10, 20}, 0);
  EXPECT_DOUBLE_EQ(step.compute_s, 21);
  EXPECT_DOUBLE_EQ(step.communication_s, 30);
  EXPECT_DOUBLE_EQ(step.exposed_s, 30);
  EXPECT_DOUBLE_EQ(step.step_s, 51);
}

// The first operation runs while block 0 computes backward, 4 s: 6 of its 10 s remain.
TEST(Simulate, OperationsHideBehindWhatComputesMeanwhile) {
  EXPECT_DOUBLE_EQ(simulate(two_buckets(), kTimes, {10, 20}, 1).exposed_s, 26);
  EXPECT_DOUBLE_EQ(simulate(two_buckets(), kTimes, {10, 20}, 0.5).exposed_s, 28);
  EXPECT_DOUBLE_EQ(simulate(two_buckets(), kTimes, {3, 0}, 1).exposed_s, 0);
}

// Started at the end of a step, needed by the second block of the next: data and a block, 3 s, hide a part.
TEST(Simulate, OperationsReachIntoTheNextStep) {
  laws::Program program;
  program.add(What::data);
  program.add(What::forward, 0);
  program.add(What::wait, 0);
  program.add(What::forward, 1);
  program.add(What::backward, 1);
  program.add(What::backward, 0);
  program.add(What::update);
  program.start({"all_gather", 100, 4, 1});
  EXPECT_DOUBLE_EQ(simulate(program, kTimes, {10}, 1).exposed_s, 7);
  EXPECT_DOUBLE_EQ(simulate(program, kTimes, {2}, 1).exposed_s, 0);
}

// A wait for a later operation waits for those before it: they share one queue.
TEST(Simulate, OneQueue) {
  laws::Program program;
  program.start({"all_gather", 100, 2, 1});
  program.start({"all_gather", 100, 2, 1});
  program.add(What::wait, 1);
  program.add(What::forward, 0);
  program.add(What::wait, 0);
  EXPECT_DOUBLE_EQ(simulate(program, {0, {1}, {1}, 0}, {10, 20}, 1).exposed_s, 30);
}

TEST(Program, IsTheSameAsASeries) {
  const laws::Program program = two_buckets();
  EXPECT_EQ(laws::program_of(laws::to_series(program)), program);
}

TEST(Program, DamagedSeriesAreRefused) {
  const auto damaged = [](size_t place, double value) {
    Series series = laws::to_series(two_buckets());
    series.values[place] = value;
    return series;
  };
  constexpr size_t kStart = 4 * laws::kProgramColumns, kWait = 7 * laws::kProgramColumns;
  EXPECT_NO_THROW(laws::program_of(damaged(kStart + 3, 1e9)));
  for (const auto& [place, value] : std::vector<std::pair<size_t, double>>{{0, 6},
                                                                           {0, -1},
                                                                           {0, 0.5},
                                                                           {0, __builtin_nan("")},
                                                                           {kStart + 1, 1},
                                                                           {kStart + 2, 99},
                                                                           {kWait + 1, 2}})
    EXPECT_THROW(laws::program_of(damaged(place, value)), UsageError) << place << " " << value;
}

}  // namespace
}  // namespace shardmark
