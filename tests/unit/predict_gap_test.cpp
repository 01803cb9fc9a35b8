// A step is composed of known compute times, one late rank and known links. The analysis finds each of these
// parts again.
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/frame/known.h"
#include "analysis/predict/gap.h"
#include "analysis_fixture.h"
#include "program_testing.h"
#include "strategies/program_series.h"

namespace shardmark {
namespace {

constexpr double kBackward = 0.04, kForward = 0.02, kLate = 0.005;
const specs::Network kNetwork{{2e-6, 1 / 10e9}, {}};

// Returns a program with one all-reduce of all gradients after backward, so nothing hides it.
strategies::Program one_all_reduce(size_t num_blocks, double bytes) {
  using What = strategies::Instruction::What;
  strategies::Program program;
  add(program, What::data);
  for (size_t b = 0; b < num_blocks; ++b) add(program, What::forward, static_cast<int64_t>(b));
  for (size_t b = num_blocks; b-- > 0;) add(program, What::backward, static_cast<int64_t>(b));
  add(program, What::wait, start(program, {specs::Collective::all_reduce, bytes, {4, 1}}));
  add(program, What::update);
  return program;
}

// Rank 3 computes for kLate longer and the others wait for it. `extra_s` is exposed time beyond what the
// links need.
Record step_record(double bytes, double extra_s) {
  Record record = training_record("ddp", 4, 4, 1);
  const auto table = *known_table(record.point.training.model);
  const double communication_s =
      specs::collective_s(specs::Collective::all_reduce, bytes, {4, 1}, kNetwork) + extra_s;
  Measures& m = record.measures;
  m.step_s = kForward + kBackward + kLate + communication_s;
  m.exposed_s = communication_s;
  Series step{"step", 4, 9, {}}, exposed{"exposed", 4, 9, {}};
  Series block_time{"block_time", 4, 2 + 2 * static_cast<int64_t>(table.blocks.size()), {}};
  for (int rank = 0; rank < 4; ++rank) {
    for (int i = 0; i < 9; ++i) {
      step.values.push_back(m.step_s + (i == 4 ? 1 : 0));  // the machine was busy during one step
      exposed.values.push_back(communication_s + (rank == 3 ? 0 : kLate) + (i == 4 ? 0.5 : 0));
    }
    block_time.values.push_back(0);
    for (const double pass_s : {kForward, kBackward})
      for (size_t b = 0; b < table.blocks.size(); ++b)
        block_time.values.push_back(pass_s / static_cast<double>(table.blocks.size()));
    block_time.values.push_back(0);
  }
  record.samples = {step, exposed, block_time,
                    strategies::to_series(one_all_reduce(table.blocks.size(), bytes))};
  return record;
}

std::vector<Record> collectives() {
  std::vector<Record> records;
  for (int64_t bytes = 1024; bytes <= 16 << 20; bytes *= 4)
    records.push_back(collective_record(
        "all_reduce", 4, bytes, true,
        specs::collective_s(specs::Collective::all_reduce, static_cast<double>(bytes), {4, 1}, kNetwork)));
  return records;
}

struct Report {
  explicit Report(std::vector<Record> records)
      : studies{study_of(std::move(records))},
        points(merge_repeats(studies)),
        predictors(make_predictors(points)) {}
  std::vector<StudyData> studies;
  MergedPoints points;
  std::vector<Predictor> predictors;
};

TEST(Gap, PartsAddUpAndAreFound) {
  std::vector<Record> records = collectives();
  records.push_back(step_record(4e6, 0.002));
  const Report report(records);
  const auto all = gaps(report.points, report.predictors);
  ASSERT_EQ(all.size(), 1);
  const Gap& gap = all.front();
  EXPECT_NEAR(gap.compute_s + gap.skew_s + gap.communication_s, gap.step_s, 1e-12);
  EXPECT_NEAR(gap.step_s, report.points.back().measures.step_s,
              1e-9);  // without the step during which the machine was busy
  EXPECT_NEAR(gap.skew_s, 0.75 * kLate, 1e-9);
  EXPECT_NEAR(gap.compute_s, kForward + kBackward + 0.25 * kLate, 1e-9);
  EXPECT_NEAR(gap.operations_s, specs::collective_s(specs::Collective::all_reduce, 4e6, {4, 1}, kNetwork),
              1e-6);
  EXPECT_NEAR(gap.expected_exposed_s, gap.operations_s, 1e-9);
  EXPECT_NEAR(gap.unexplained_s(), 0.002, 1e-6);
  EXPECT_EQ(gap.missing, "");
  EXPECT_TRUE(gap.caveat.empty());
}

TEST(Gap, SaysWhatWasNotMeasured) {
  std::vector<Record> records = collectives();
  records.push_back(step_record(1e9, 0));
  const Report large(records);
  const std::vector<std::string> beyond = {"sizes outside those measured"};
  EXPECT_EQ(gaps(large.points, large.predictors).front().caveat, beyond);

  const Report alone({step_record(4e6, 0)});
  const auto all = gaps(alone.points, alone.predictors);
  ASSERT_EQ(all.size(), 1);
  EXPECT_EQ(all.front().missing, "no measured times of all_reduce or a similar operation");
  EXPECT_TRUE(std::isnan(all.front().unexplained_s()));
  EXPECT_NEAR(all.front().skew_s, 0.75 * kLate, 1e-9);  // what was measured is reported nevertheless
  const Table table = gap_table(alone.points, alone.predictors);
  EXPECT_EQ(cell(table, 0, "unexplained").text, "-");
  EXPECT_EQ(cell(table, 0, "expectation").text,
            "none: no measured times of all_reduce or a similar operation");
}

TEST(Gap, PointsWithoutAProgramHaveNoRow) {
  const Report report({training_record("ddp", 4, 4, 0.1, 0.01), training_record("single", 4, 4, 0.1)});
  EXPECT_TRUE(gap_table(report.points, report.predictors).rows.empty());
}

}  // namespace
}  // namespace shardmark
