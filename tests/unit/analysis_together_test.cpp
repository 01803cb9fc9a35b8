// Tests a collective that runs at the same time as a load: the ratio in each round, the share of the shorter
// one that is hidden, and what predictions and findings derive from it. Such points are in no table of
// collectives. Their own table and the first screen show how well the two overlap, whatever their durations.
#include <gmock/gmock.h>

#include "analysis/findings/findings.h"
#include "analysis/frame/launches.h"
#include "analysis/frame/together.h"
#include "analysis/overview/overview.h"
#include "analysis/predict/predictor.h"
#include "analysis/report.h"
#include "analysis_fixture.h"

namespace shardmark {
namespace {

Series rounds_series(const char* name, double rank_0_s, double rank_1_s) {
  Series series{name, 2, 20, {}};
  for (const double seconds : {rank_0_s, rank_1_s})
    for (int round = 0; round < 20; ++round) series.values.push_back(seconds * (1 + 0.001 * round));
  return series;
}

// Returns a record in which the slowest rank takes 10 ms for the load alone and 10 ms for the collective
// alone.
Record together_record(double load_s, double collective_s, double both_s) {
  Record record;
  record.point.workload = "collective";
  record.point.ranks = 2;
  record.point.collective = {
      "all_reduce", "float32", "sum", 1 << 20, true, "equal", "matmul(m=64, n=64, k=64, dtype=float32)"};
  record.id = point_id(record.point);
  record.samples = {rounds_series("load_alone", 0.008, 0.010),
                    rounds_series("collective_alone", 0.010, 0.010),
                    rounds_series("load_together", load_s, load_s / 2),
                    rounds_series("collective_together", collective_s, collective_s),
                    rounds_series("together", both_s, both_s)};
  record.measures.step_s = 0.04;
  record.measures.busbw_gb_s = 1;
  return record;
}

StudyData study_of(std::vector<Record> records) {
  StudyData study{"t.h5", {}, std::move(records)};
  study.environment.world_ranks = 2;
  return study;
}

TEST(TogetherOf, AreTheRatiosOfEachRound) {
  const std::vector<StudyData> studies = {study_of({together_record(0.012, 0.015, 0.016)})};
  const auto points = merge_repeats(studies);
  const auto found = together_of(points.at(0));
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->together_s, 0.016 * 1.0095, 1e-9);
  EXPECT_NEAR(found->ratio.value, 1.6, 1e-9);
  EXPECT_NEAR(found->ratio.low, 1.6, 1e-9);
  EXPECT_NEAR(found->no_overlap, 2, 1e-9);
  EXPECT_NEAR(found->hidden, 0.4, 1e-9);
  EXPECT_NEAR(found->of_sum.value, 0.8, 1e-9);
  EXPECT_NEAR(found->load_slowdown, 1.2, 1e-9);
  EXPECT_NEAR(found->collective_slowdown, 1.5, 1e-9);
  EXPECT_NEAR(found->progress(), 0.4, 1e-9);
}

// A load of 292 ms with collectives of 3.47 ms, as in an older study. The collectives end with the load,
// which is 84 times as long. Their longer time must not be shown as a slow-down.
Record unequal_record(double both_s) {
  Record record = together_record(0.292, 0.2973, both_s);
  record.samples[0] = rounds_series("load_alone", 0.292, 0.292);
  record.samples[1] = rounds_series("collective_alone", 0.00347, 0.00347);
  return record;
}

TEST(TogetherOf, SaysNothingThatTheLengthOfTheLoadWouldDecide) {
  const std::vector<StudyData> unequal = {study_of({unequal_record(0.2973)})};
  const Table alone = together_table(merge_repeats(unequal));
  ASSERT_EQ(alone.rows.size(), 1u);
  EXPECT_EQ(cell(alone, 0, "together / longer alone median").text, "1.02");
  EXPECT_EQ(cell(alone, 0, "no overlap").text, "1.01");
  for (const char* column : {"slow-down load", "slow-down collective"})
    EXPECT_EQ(cell(alone, 0, column).text, "-") << column;
  const std::vector<StudyData> equal = {study_of({together_record(0.012, 0.015, 0.016)})};
  const Table both = together_table(merge_repeats(equal));
  EXPECT_EQ(cell(both, 0, "slow-down load").text, "1.20");
  EXPECT_EQ(cell(both, 0, "slow-down collective").text, "1.50");
  EXPECT_EQ(cell(both, 0, "hidden").text, "40");
}

// A ratio of 1.00 means perfect overlap. The sum of both times over the longer one means no overlap. Between
// these, the ratio is linear in the hidden share.
TEST(TogetherOf, RatioLiesBetweenHiddenAndOneAfterTheOther) {
  for (const double hidden : {0.0, 0.25, 0.5, 1.0}) {
    const std::vector<StudyData> studies = {study_of({together_record(0.012, 0.015, 0.02 - 0.01 * hidden)})};
    const auto found = together_of(merge_repeats(studies).at(0));
    ASSERT_TRUE(found);
    EXPECT_NEAR(found->ratio.value, 2 - hidden, 1e-9);
    EXPECT_NEAR(found->hidden, hidden, 1e-9);
  }
}

TEST(TogetherOf, IsTheFirstScreensAnswer) {
  const std::vector<StudyData> studies = {study_of({together_record(0.012, 0.015, 0.016)})};
  const auto points = merge_repeats(studies);
  const std::string text = to_text(overview_of(studies, points, {}, {}), {});
  EXPECT_THAT(text, ::testing::HasSubstr(
                        "\nTwo things at once\nall_reduce of 1.00 MiB, 2 ranks, float32; matmul: m="));
  EXPECT_THAT(text, ::testing::ContainsRegex("\n  matmul +10.10 +10.10 +16.15 +1.60 +40\n"));
}

// Each launch chooses the length of its rounds, so their times cannot be compared between launches.
TEST(TogetherOf, IsNotCompared) {
  Record record = together_record(0.012, 0.015, 0.016);
  record.outcome = Outcome::ok;
  const Launches launches = launches_of({study_of({record})});
  ASSERT_EQ(launches.points.size(), 1u);
  EXPECT_THAT(launches.points.begin()->second.step_s, ::testing::IsEmpty());
  EXPECT_THAT(launches.points.begin()->second.missing, ::testing::HasSubstr("table together"));
}

TEST(TogetherOf, IsNothingWithoutSamples) {
  Record record = together_record(0.012, 0.015, 0.016);
  record.samples.clear();
  const std::vector<StudyData> studies = {study_of({record})};
  EXPECT_FALSE(together_of(merge_repeats(studies).at(0)));
}

TEST(TogetherOf, LosesWhereTheIntervalIsBelowOne) {
  const auto kinds = [](double both_s) {
    const std::vector<StudyData> studies = {study_of({together_record(0.015, 0.015, both_s)})};
    const auto points = merge_repeats(studies);
    std::vector<std::string> found;
    for (const PointFinding& finding : findings_of(points)) found.push_back(finding.kind);
    return found;
  };
  EXPECT_THAT(kinds(0.024), ::testing::Contains("overlap loses"));
  EXPECT_THAT(kinds(0.016), ::testing::Not(::testing::Contains("overlap loses")));
}

TEST(TogetherOf, HasATableOfItsOwnAlone) {
  const std::vector<StudyData> studies = {study_of({together_record(0.012, 0.015, 0.016)})};
  std::vector<std::string> keys;
  for (const Table& table : make_report(studies, {})) keys.push_back(table.key);
  EXPECT_THAT(keys, ::testing::Contains("together"));
  for (const std::string& key : keys) EXPECT_THAT(key, ::testing::Not(::testing::StartsWith("collectives")));
}

// A measured progress replaces the fitted one.
TEST(TogetherOf, GivesPredictionsTheirProgress) {
  const std::vector<StudyData> studies = {study_of({together_record(0.012, 0.015, 0.016)})};
  const auto points = merge_repeats(studies);
  const Predictor predictor(points, points.at(0).machine, points.at(0).transport);
  EXPECT_NEAR(predictor.progress(), 0.4, 1e-9);
}

}  // namespace
}  // namespace shardmark
