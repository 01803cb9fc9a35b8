// Tests the event simulation on programs whose times can be added by hand, and programs that are stored as a
// series.
#include <gtest/gtest.h>

#include "analysis/predict/predictor.h"
#include "base/error.h"
#include "program_testing.h"
#include "strategies/program_series.h"
#include "strategies/simulate.h"

namespace shardmark {
namespace {

using What = strategies::Instruction::What;

// Returns a program with two blocks. An operation starts after the backward of each block, and the update
// waits for both.
strategies::Program two_buckets() {
  strategies::Program program;
  add(program, What::data);
  add(program, What::forward, 0);
  add(program, What::forward, 1);
  add(program, What::backward, 1);
  start(program, {specs::Collective::all_reduce, 100, {4, 1}});
  add(program, What::backward, 0);
  start(program, {specs::Collective::all_reduce, 50, {4, 1}});
  add(program, What::wait, 0);
  add(program, What::wait, 1);
  add(program, What::update);
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

// The first operation overlaps with the backward of block 0, which takes 4 s. So 6 of its 10 s remain.
TEST(Simulate, OperationsHideBehindWhatComputesMeanwhile) {
  EXPECT_DOUBLE_EQ(simulate(two_buckets(), kTimes, {10, 20}, 1).exposed_s, 26);
  EXPECT_DOUBLE_EQ(simulate(two_buckets(), kTimes, {10, 20}, 0.5).exposed_s, 28);
  EXPECT_DOUBLE_EQ(simulate(two_buckets(), kTimes, {3, 0}, 1).exposed_s, 0);
}

// The operation starts at the end of a step and is needed by the second block of the next step. Loading data
// and the first block take 3 s and hide a part of it.
TEST(Simulate, OperationsReachIntoTheNextStep) {
  strategies::Program program;
  add(program, What::data);
  add(program, What::forward, 0);
  add(program, What::wait, 0);
  add(program, What::forward, 1);
  add(program, What::backward, 1);
  add(program, What::backward, 0);
  add(program, What::update);
  start(program, {specs::Collective::all_gather, 100, {4, 1}});
  EXPECT_DOUBLE_EQ(simulate(program, kTimes, {10}, 1).exposed_s, 7);
  EXPECT_DOUBLE_EQ(simulate(program, kTimes, {2}, 1).exposed_s, 0);
}

// The call of a block follows it in a program, but it was under way while the block computed a quarter of its
// backward, which takes 4 s.
TEST(Simulate, ABlockHidesItsCallsBehindAShareOfItself) {
  strategies::Program program;
  add(program, What::forward, 0);
  add(program, What::backward, 0);
  strategies::CollectiveCall call{specs::Collective::all_reduce, 100, {2, 1}};
  call.inside_block = specs::BlockCall{.hidden_by = 0.25};
  add(program, What::wait, start(program, call));
  EXPECT_DOUBLE_EQ(simulate(program, {0, {2}, {4}, 0}, {3}, 1).exposed_s, 2);
  EXPECT_DOUBLE_EQ(simulate(program, {0, {2}, {4}, 0}, {3}, 0.5).exposed_s, 2.5);
  EXPECT_DOUBLE_EQ(simulate(program, {0, {2}, {4}, 0}, {3}, 0).exposed_s, 3);
  EXPECT_DOUBLE_EQ(simulate(program, {0, {2}, {4}, 0}, {0.5}, 1).exposed_s, 0);
}

// Operations share one queue, so waiting for the second one also waits for the first.
TEST(Simulate, OneQueue) {
  strategies::Program program;
  start(program, {specs::Collective::all_gather, 100, {2, 1}});
  start(program, {specs::Collective::all_gather, 100, {2, 1}});
  add(program, What::wait, 1);
  add(program, What::forward, 0);
  add(program, What::wait, 0);
  EXPECT_DOUBLE_EQ(simulate(program, {0, {1}, {1}, 0}, {10, 20}, 1).exposed_s, 30);
}

// While a call inside a block is waited for, a strategy's operation is under way. On the same links each has
// half of them, so that 4 s of work take 8; on other links they do not meet. No work is lost.
TEST(Simulate, OperationsOnTheSameLinksShareThem) {
  strategies::Program program;
  const size_t gather = start(program, {specs::Collective::all_gather, 100, {2, 1}});
  add(program, What::forward, 0);
  strategies::CollectiveCall call{specs::Collective::all_to_all, 100, {2, 1}};
  call.inside_block = specs::BlockCall{};
  call.dimension = specs::Dimension::expert;
  add(program, What::wait, start(program, call));
  add(program, What::wait, gather);
  const auto waited_s = [&](std::vector<int64_t> links) {
    const strategies::SimulatedStep step =
        strategies::simulate({{&program, {0, {1}, {1}, 0}, {10, 4}, std::move(links)}}, 1);
    return std::pair(step.waited_s[static_cast<size_t>(specs::Dimension::expert)],
                     step.waited_s[static_cast<size_t>(specs::Dimension::data)]);
  };
  EXPECT_EQ(waited_s({1, 1}), std::pair(8.0, 5.0));
  EXPECT_EQ(waited_s({}), std::pair(4.0, 5.0));
  EXPECT_EQ(waited_s({0, 0}), std::pair(4.0, 5.0));
  EXPECT_EQ(waited_s({1, 0}), std::pair(4.0, 5.0));
}

TEST(Program, IsTheSameAsASeries) {
  const strategies::Program program = two_buckets();
  const strategies::Program again = strategies::program_of(strategies::to_series(program));
  EXPECT_EQ(again.calls, program.calls);
  ASSERT_EQ(again.instructions.size(), program.instructions.size());
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    EXPECT_EQ(again.instructions[i].what, program.instructions[i].what) << i;
    EXPECT_EQ(again.instructions[i].index, program.instructions[i].index) << i;
  }
}

TEST(Program, DamagedSeriesAreRefused) {
  const auto damaged = [](size_t place, double value) {
    Series series = strategies::to_series(two_buckets());
    series.values[place] = value;
    return series;
  };
  constexpr size_t kStart = 4 * strategies::kProgramColumns, kWait = 7 * strategies::kProgramColumns;
  EXPECT_NO_THROW(strategies::program_of(damaged(kStart + 3, 1e9)));
  for (const auto& [place, value] : std::vector<std::pair<size_t, double>>{{0, 9},
                                                                           {0, -1},
                                                                           {0, 0.5},
                                                                           {0, __builtin_nan("")},
                                                                           {kStart + 1, 1},
                                                                           {kStart + 2, 99},
                                                                           {kWait + 1, 2}})
    EXPECT_THROW(strategies::program_of(damaged(place, value)), UsageError) << place << " " << value;
}

}  // namespace
}  // namespace shardmark
