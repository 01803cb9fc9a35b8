// Tests the fit of how steps get slower with more nodes, on invented rows and studies whose growth is known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/predict/growth.h"
#include "predict_fixture.h"

namespace shardmark {
namespace {

using ::testing::HasSubstr;

constexpr double kGrowth = 4e-4;  // seconds per operation across nodes, for each doubling of the nodes

// Returns steps of 0.5 s and more, whose simulated time is too short by the factor `scale` on all numbers of
// nodes. On top of that, steps grow with the number of nodes, with a little noise on the growth.
std::vector<GrowthRow> rows_on(const std::vector<int64_t>& nodes, int64_t of_each, double scale = 1) {
  std::vector<GrowthRow> rows;
  for (const int64_t n : nodes)
    for (int64_t i = 0; i < of_each; ++i) {
      const double operations = n > 1 ? 20.0 * static_cast<double>(i + 1) : 0;
      const double simulated_s = 0.5 + 0.1 * static_cast<double>(i);
      const double doublings = std::log2(static_cast<double>(n) / static_cast<double>(nodes.front()));
      const double noise = (i % 2 == 0 ? 1 : -1) * 2e-2 * (0.03 * operations * kGrowth * doublings);
      rows.push_back(
          {n, operations, simulated_s, scale * simulated_s + kGrowth * operations * doublings + noise});
    }
  return rows;
}

TEST(Growth, IsFoundInRowsThatGrow) {
  const auto growth = fit_growth(rows_on({1, 2, 4, 8}, 6));
  ASSERT_TRUE(growth.has_value());
  EXPECT_TRUE(growth->is_seen());
  EXPECT_NEAR(growth->operation_s.value / kGrowth, 1, 0.01);
  EXPECT_LE(growth->operation_s.low, growth->operation_s.value);
  EXPECT_GE(growth->operation_s.high, growth->operation_s.value);
  EXPECT_EQ(growth->num_rows, 24);
  // 80 operations on 16 nodes have grown by four doublings since one node.
  EXPECT_NEAR(growth->added_s(16, 80).value / (4 * 80 * kGrowth), 1, 0.01);
  EXPECT_EQ(growth->added_s(1, 80).value, 0);
  EXPECT_THAT(growth->text(), HasSubstr("for each doubling of nodes beyond 1"));
  EXPECT_THAT(growth->text(), HasSubstr("fitted from 24 rows on 1 to 8 nodes"));
}

// If steps on the fewest nodes also take longer than simulated, that is another kind of error.
TEST(Growth, IsNotWhatEveryRowLacks) {
  const auto growth = fit_growth(rows_on({2, 4, 8}, 6, 1.3));
  ASSERT_TRUE(growth.has_value());
  EXPECT_NEAR(growth->operation_s.value / kGrowth, 1, 0.01);
  EXPECT_EQ(growth->least_nodes, 2);

  std::vector<GrowthRow> flat = rows_on({2, 4, 8}, 6, 1.3);
  for (GrowthRow& row : flat) row.measured_s = 1.3 * row.simulated_s;
  const auto none = fit_growth(flat);
  ASSERT_TRUE(none.has_value());
  EXPECT_FALSE(none->is_seen());
}

TEST(Growth, IsNotDecidedByAFewSlowSteps) {
  std::vector<GrowthRow> rows = rows_on({1, 2, 4, 8}, 6);
  for (const size_t slow : {7, 15, 23}) rows[slow].measured_s *= 10;
  const auto growth = fit_growth(rows);
  ASSERT_TRUE(growth.has_value());
  EXPECT_NEAR(growth->operation_s.value / kGrowth, 1, 0.02);
}

TEST(Growth, NeedsSeveralNumbersOfNodes) {
  EXPECT_FALSE(fit_growth({}).has_value());
  EXPECT_FALSE(fit_growth(rows_on({1}, 12)).has_value());
  EXPECT_FALSE(fit_growth(rows_on({4}, 12)).has_value());
  EXPECT_FALSE(fit_growth(rows_on({1, 2}, 5)).has_value());
  EXPECT_TRUE(fit_growth(rows_on({1, 2}, 6)).has_value());
  EXPECT_EQ(growth_without(rows_on({1}, 1), 0), 0);
  std::vector<GrowthRow> rows = rows_on({1, 2, 4}, 4);
  rows.push_back({4, 1e6, 1, 1});  // a row that outweighs all others
  EXPECT_NEAR(growth_without(rows, rows.size() - 1) / kGrowth, 1, 0.01);
}

double operations_of(const Point& point) {
  double all = 0;
  for (const double count : operations_across(Stages(point), kRanksPerNode)) all += count;
  return all;
}

double grown_s(const Point& point, double seconds) {
  return seconds * operations_of(point) *
         std::log2(static_cast<double>(point.ranks) / static_cast<double>(kRanksPerNode));
}

// Returns the study of the other tests, on 1, 2 and 4 nodes, with steps that grow.
StudyData growing_study(double seconds, int64_t most_ranks = 8) {
  StudyData growing = study();
  for (Record& record : growing.records) {
    if (record.point.workload != "training" || record.point.training.strategy.name == "single") continue;
    const double added_s = grown_s(record.point, seconds);
    Measures& m = record.measures;
    for (double* part : {&m.step_s, &m.step_low_s, &m.step_high_s, &m.exposed_s}) *part += added_s;
  }
  std::erase_if(growing.records, [&](const Record& record) { return record.point.ranks > most_ranks; });
  return growing;
}

class PredictGrowth : public Predict {
 protected:
  void SetUp() override {
    studies_ = {growing_study(kSeconds)};
    points_ = merge_repeats(studies_);
    predictors_ = make_predictors(points_);
  }
  static constexpr double kSeconds = 0.02;  // as long as a block of these models
};

TEST_F(PredictGrowth, IsInPredictionsForMoreNodes) {
  const auto& growth = predictors_[0].growth();
  ASSERT_TRUE(growth.has_value());
  EXPECT_TRUE(growth->is_seen());
  EXPECT_NEAR(growth->operation_s.value / kSeconds, 1, 0.1);
  EXPECT_EQ(growth->most_nodes, 4);
  for (const char* strategy : {"ddp", "fsdp"}) {
    const Point wanted = point(strategy, 32, 8);
    const Prediction prediction = predictors_[0].predict(like(), wanted, {kRanksPerNode});
    ASSERT_EQ(prediction.unknown, "");
    const double truth_s = true_step(wanted).step_s + grown_s(wanted, kSeconds);
    EXPECT_NEAR(prediction.step_s.value / truth_s, 1, 0.08) << strategy;
    EXPECT_LT(prediction.step_s.value - grown_s(wanted, kSeconds),
              0.9 * truth_s);  // the growth is a large part of the step
    EXPECT_LE(prediction.step_s.low, prediction.step_s.value);
    EXPECT_GE(prediction.step_s.high, prediction.step_s.value);
    EXPECT_NEAR(prediction.parts.exposed_s, prediction.parts.step_s - prediction.parts.compute_s,
                1e-9 * prediction.parts.step_s);
    double waited_s = 0;
    for (const double one : prediction.parts.waited_s) waited_s += one;
    EXPECT_NEAR(waited_s, prediction.parts.exposed_s, 1e-6 * prediction.parts.step_s);
  }
  PredictQuery query;
  query.ranks = {32};
  const Table table = best_table(points_, predict_all(points_, predictors_, query), query);
  EXPECT_THAT(table.notes, testing::Contains(HasSubstr("Steps grow by")));
}

// For a held-out point, the growth that the other points have is included.
TEST_F(PredictGrowth, IsInHeldOutPoints) {
  for (const HeldOut& held : predictors_[0].held_out())
    EXPECT_NEAR(held.error(), 0, 0.12) << held.merged->strategy << " on " << held.merged->point.ranks;
}

// The growth belongs to the measured network, and it is unknown if only one number of nodes was measured.
TEST_F(PredictGrowth, IsAbsentWhereItIsNotKnown) {
  const specs::Link other{"other", 10e-6, 2e9, ""};
  const Point wanted = point("ddp", 32, 8);
  EXPECT_FALSE(predictors_[0].predict(like(), wanted, {kRanksPerNode, other}).growth.has_value());
  EXPECT_THAT(predictors_[0].growth_text({kRanksPerNode, other}), HasSubstr("--network"));
  EXPECT_TRUE(predictors_[0].predict(like(), wanted, {kRanksPerNode}).growth.has_value());

  const std::vector<StudyData> one_node = {growing_study(kSeconds, kRanksPerNode)};
  const MergedPoints points = merge_repeats(one_node);
  const std::vector<Predictor> predictors = make_predictors(points);
  EXPECT_FALSE(predictors[0].growth().has_value());
  EXPECT_THAT(predictors[0].growth_text({kRanksPerNode}), HasSubstr("on several numbers of nodes"));

  const std::vector<StudyData> without = {growing_study(0)};
  const MergedPoints others = merge_repeats(without);
  const std::vector<Predictor> of_others = make_predictors(others);
  EXPECT_FALSE(of_others[0].predict(others.front(), wanted, {kRanksPerNode}).growth.has_value());
}

}  // namespace
}  // namespace shardmark
