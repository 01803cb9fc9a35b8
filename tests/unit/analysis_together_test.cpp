// A collective beside a load: ratios by round, the gain, what predictions and findings make of it; and that
// such points are in no table of collectives.
#include <gmock/gmock.h>

#include "analysis/predict/predictor.h"
#include "analysis/quality/findings.h"
#include "analysis/report.h"
#include "analysis/together.h"
#include "analysis_fixture.h"

namespace shardmark {
namespace {

Series rounds_series(const char* name, double rank_0_s, double rank_1_s) {
  Series series{name, 2, 20, {}};
  for (const double seconds : {rank_0_s, rank_1_s})
    for (int round = 0; round < 20; ++round) series.values.push_back(seconds * (1 + 0.001 * round));
  return series;
}

// The slowest rank takes 10 ms for either side alone.
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
  EXPECT_NEAR(found->load.value, 1.2, 1e-9);
  EXPECT_NEAR(found->load.low, 1.2, 1e-9);
  EXPECT_NEAR(found->collective.value, 1.5, 1e-9);
  EXPECT_NEAR(found->gain.value, 20 / 16.0, 1e-9);
  EXPECT_NEAR(found->progress, 0.4, 1e-9);
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
  for (const std::string& key : keys) EXPECT_THAT(key, ::testing::Not(::testing::StartsWith("collective_")));
}

// The measured progress takes the place of the fitted one.
TEST(TogetherOf, GivesPredictionsTheirProgress) {
  const std::vector<StudyData> studies = {study_of({together_record(0.012, 0.015, 0.016)})};
  const auto points = merge_repeats(studies);
  const Predictor predictor(points, points.at(0).machine, points.at(0).transport);
  EXPECT_NEAR(predictor.progress(), 0.4, 1e-9);
}

}  // namespace
}  // namespace shardmark
