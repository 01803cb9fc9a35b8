// Tests scaling series, efficiencies, the Karp-Flatt metric and their tables with numbers computed by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/stats/scaling.h"
#include "analysis_fixture.h"

namespace shardmark {
namespace {

TEST(KarpFlatt, ByHand) {
  EXPECT_DOUBLE_EQ(karp_flatt(4, 8), (0.25 - 0.125) / 0.875);  // 1/7
  EXPECT_DOUBLE_EQ(karp_flatt(8, 8), 0);
  EXPECT_DOUBLE_EQ(karp_flatt(1, 8), 1);
  EXPECT_LT(karp_flatt(9, 8), 0);  // faster than linear
  EXPECT_TRUE(std::isnan(karp_flatt(1, 1)));
}

TEST(ScalingTables, KeepWeakAndStrongApart) {
  const StudyData study =
      study_of({training_record("ddp", 1, 8, 0.8), training_record("ddp", 2, 8, 1.0),
                training_record("ddp", 2, 4, 0.5), training_record("ddp", 4, 2, 0.3125),
                training_record("single", 1, 8, 0.7), training_record("single", 2, 8, 0.7)});
  const MergedPoints points = merge_repeats({study});
  const auto series = scaling_series(points);
  const Table weak = scaling_table(Scaling::weak, points, series);
  ASSERT_EQ(weak.rows.size(), 2u);  // batch 8 on 1 and 2 ranks, without `single`
  EXPECT_EQ(cell(weak, 1, "efficiency median").text, "80.0");
  EXPECT_EQ(cell(weak, 1, "base n0").text, "1");
  const Table strong = scaling_table(Scaling::strong, points, series);
  ASSERT_EQ(strong.rows.size(), 3u);                             // global batch 8 on 1, 2 and 4 ranks
  EXPECT_EQ(cell(strong, 1, "efficiency median").text, "80.0");  // 0.8 / (2 x 0.5)
  EXPECT_EQ(cell(strong, 2, "efficiency median").text, "64.0");  // 0.8 / (4 x 0.3125)
  EXPECT_NEAR(cell(strong, 2, "Karp-Flatt").value.get<double>(), 0.1875, 1e-12);  // (1/2.56 - 1/4) / (3/4)
  EXPECT_EQ(cell(scaling_laws_table(points, series), 0, "not fitted, because").text,
            "2 counts; a fit needs 4, or 3 in several launches");
}

TEST(ScalingTables, NameABaseAboveOneRank) {
  const MergedPoints points =
      merge_repeats({study_of({training_record("ddp", 2, 4, 0.5), training_record("ddp", 4, 2, 0.3125)})});
  const Table strong = scaling_table(Scaling::strong, points, scaling_series(points));
  EXPECT_EQ(cell(strong, 1, "base n0").text, "2");
  EXPECT_EQ(cell(strong, 1, "efficiency median").text, "80.0");
  EXPECT_EQ(cell(strong, 1, "speed-up").text, "-");
  EXPECT_EQ(cell(strong, 1, "Karp-Flatt").text, "-");
}

// Returns ddp on 1, 2, ..., 2^(num_counts-1) ranks with a global batch of 64. Times follow Amdahl's law with
// serial fraction s.
std::vector<Record> amdahl_records(double s, int num_counts) {
  std::vector<Record> records;
  for (int k = 0; k < num_counts; ++k) {
    const int64_t n = int64_t{1} << k;
    records.push_back(training_record("ddp", n, 64 / n, s + (1 - s) / static_cast<double>(n)));
  }
  return records;
}

TEST(ScalingTables, OversubscribedPointsAreMarkedAndNotFitted) {
  std::vector<Record> records = amdahl_records(0.1, 5);
  records.back().measures.oversubscribed = true;
  records.back().measures.step_s = 5;  // oversubscribed times can be anything
  records.back().measures.samples_per_s = 64.0 / 5;
  const MergedPoints points = merge_repeats({study_of(records)});
  const auto series = scaling_series(points);
  EXPECT_EQ(cell(scaling_table(Scaling::strong, points, series), 4, "warnings").text, "oversubscribed");
  const Table laws = scaling_laws_table(points, series);
  ASSERT_EQ(laws.rows.size(), 2u);
  EXPECT_NE(cell(laws, 1, "not fitted, because").text, "-");  // the USL needs 5 counts
  EXPECT_EQ(cell(laws, 0, "law").text, "Amdahl");
  EXPECT_NEAR(cell(laws, 0, "s or alpha value").value.get<double>(), 10, 1e-6);
  EXPECT_NEAR(cell(laws, 0, "limit or peak value").value.get<double>(), 10, 1e-6);
}

TEST(EfficiencyLimit, IsMeasuredWhereItCanBe) {
  const MergedPoints points = merge_repeats({study_of(amdahl_records(0.1, 5))});
  const Crossing measured = scaling_series(points).front().below_80;
  EXPECT_EQ(measured.from, "measured");  // E(2) = 1/1.1 and E(4) = 1/1.3
  EXPECT_DOUBLE_EQ(measured.ranks.low, 2);
  EXPECT_DOUBLE_EQ(measured.ranks.high, 4);
  EXPECT_NEAR(measured.ranks.value, 2 + 2 * (1 / 1.1 - 0.8) / (1 / 1.1 - 1 / 1.3), 1e-9);
}

// The base has a warning, and the first count without one is below 80 % already: nothing measured says where
// efficiency fell below.
TEST(EfficiencyLimit, IsNotMeasuredBelowTheFirstReliableCount) {
  std::vector<Record> records = amdahl_records(0.5, 3);
  records.front().measures.oversubscribed = true;
  const MergedPoints points = merge_repeats({study_of(records)});
  const ScalingSeries series = scaling_series(points).front();
  ASSERT_LT(series.points[1].efficiency.value, 0.8);
  EXPECT_NE(series.below_80.from, "measured");
}

TEST(EfficiencyLimit, IsExtrapolatedByALawAndElseUnknown) {
  const MergedPoints enough = merge_repeats({study_of(amdahl_records(0.01, 5))});
  const Crossing fitted = scaling_series(enough).front().below_80;
  EXPECT_EQ(fitted.from, "Amdahl");
  EXPECT_NEAR(fitted.ranks.value, 26, 1e-6);  // solves 1 / (1 + 0.01 (n-1)) = 0.8
  const MergedPoints flat =
      merge_repeats({study_of(amdahl_records(0.001, 5))});  // would cross 80 % at 251 ranks
  const auto far = scaling_series(flat);
  EXPECT_TRUE(std::isinf(far.front().below_80.ranks.value));
  EXPECT_EQ(cell(efficiency_limits_table(flat, far), 0, "falls below 80 % at ranks value").text, "> 128");
  const MergedPoints few = merge_repeats({study_of(amdahl_records(0.01, 3))});
  const Crossing unknown = scaling_series(few).front().below_80;
  EXPECT_EQ(unknown.from, "");
  EXPECT_TRUE(std::isnan(unknown.ranks.value));
}

// Ranks 0 to 3 are on node a, ranks 4 to 7 on node b, and so on.
StudyData study_on_nodes(std::vector<Record> records) {
  StudyData study = study_of(std::move(records));
  study.environment.nodes = {"a", "b", "c", "d"};
  for (const std::string& node : study.environment.nodes)
    for (int i = 0; i < 4; ++i) study.environment.rank_nodes.push_back(node);
  return study;
}

TEST(ScalingSeries, KeepsANodeAndSeveralApart) {
  const MergedPoints points = merge_repeats({study_on_nodes(amdahl_records(0.1, 5))});
  const auto series = scaling_series(points);
  ASSERT_EQ(series.size(), 3u);
  EXPECT_EQ(unit_text(series[0]), "ranks of one node");
  EXPECT_EQ(series[0].points.size(), 3u);  // 1, 2 and 4 ranks
  EXPECT_EQ(unit_text(series[1]), "nodes of 4 ranks");
  ASSERT_EQ(series[1].points.size(), 3u);  // 4, 8 and 16 ranks are 1, 2 and 4 nodes
  EXPECT_DOUBLE_EQ(series[1].points[2].units, 4);
  EXPECT_NEAR(series[1].points[2].efficiency.value, 0.325 / (4 * 0.15625), 1e-12);
  EXPECT_NEAR(series[1].points[2].speed_up.value, 0.325 / 0.15625, 1e-12);  // relative to one node
  EXPECT_EQ(unit_text(series[2]), "ranks");
  EXPECT_EQ(series[2].points.size(), 5u);
  EXPECT_EQ(series[2].fits[0].refused, "");  // a law with two levels covers one node and several
  EXPECT_EQ(to_text(series[2].fits[0]), "Amdahl, 2 levels");
  EXPECT_NEAR(series[2].fits[0].parameters[0].estimate.value, 0.1, 1e-9);
}

// Returns five launches of 1 to 32 ranks on nodes of 8. Times follow Amdahl's law with s = 2 %, and each rank
// beyond the first node costs 1 % more.
std::vector<StudyData> five_launches(int num_repeats) {
  std::vector<StudyData> studies;
  for (int launch = 0; launch < 5; ++launch) {
    std::vector<Record> records;
    for (const int64_t n : {1, 4, 8, 16, 32})
      for (int repeat = 0; repeat < num_repeats; ++repeat) {
        const double cost =
            1 + 0.02 * static_cast<double>(n - 1) + 0.01 * std::max<double>(static_cast<double>(n) - 8, 0);
        const double luck = 1 + 0.01 * ((3 * launch + n) % 5 - 2);
        records.push_back(training_record("ddp", n, 64 / n, luck * cost / static_cast<double>(n)));
        records.back().point.repeat = repeat;
        records.back().id = point_id(records.back().point);
      }
    StudyData study = study_of(std::move(records), "results/" + std::to_string(launch) + ".h5");
    study.environment.started = "2026-01-01T00:0" + std::to_string(launch) + ":00Z";
    study.environment.nodes = {"a", "b", "c", "d"};
    for (const std::string& node : study.environment.nodes)
      study.environment.rank_nodes.insert(study.environment.rank_nodes.end(), 8, node);
    studies.push_back(std::move(study));
  }
  return studies;
}

TEST(ScalingTables, ASweepOverTheNodesBorderInFiveLaunchesIsFitted) {
  const std::vector<StudyData> studies =
      five_launches(2);  // repeats within a launch share its deviation, so they do not count as launches
  const MergedPoints points = merge_repeats(studies);
  ASSERT_EQ(points.size(), 5u);
  EXPECT_EQ(points[0].launches.size(), 5u);
  const auto series = scaling_series(points);
  const Table laws = scaling_laws_table(points, series), quality = fit_quality_table(points, series);
  std::vector<std::string> names;
  for (size_t row = 0; row < laws.rows.size(); ++row)
    names.push_back(cell(laws, row, "over").text + ": " + cell(laws, row, "law").text);
  EXPECT_EQ(names, (std::vector<std::string>{"ranks of one node: Amdahl", "ranks of one node: USL",
                                             "nodes of 8 ranks: Amdahl", "nodes of 8 ranks: USL",
                                             "ranks: Amdahl, 2 levels", "ranks: USL, 2 levels"}));
  EXPECT_NEAR(cell(laws, 4, "s or alpha value").value.get<double>(), 2, 0.2);
  EXPECT_NEAR(cell(laws, 4, "delta value").value.get<double>(), 1, 0.2);
  EXPECT_EQ(cell(quality, 4, "degrees").text, "22");  // 5 launches of 5 counts, less 3 parameters
  EXPECT_EQ(cell(quality, 4, "assumed").text, "launches scatter alike");
  EXPECT_EQ(cell(quality, 1, "tested by ranks").text, "2");
  for (size_t row = 0; row < laws.rows.size(); ++row)
    EXPECT_EQ(cell(laws, row, "not fitted, because").text, "-");
}

TEST(ScalingTables, ACopyOfAStudyIsNoFurtherLaunch) {
  StudyData study = five_launches(1).front();
  const MergedPoints points = merge_repeats({study, study, study});
  EXPECT_EQ(points[0].repeats, 3);
  EXPECT_EQ(points[0].launches.size(), 1u);
}

TEST(ScalingTables, SmallBetasKeepTheirDigits) {
  std::vector<Record> records;
  for (int64_t n = 1; n <= 1024; n *= 4)
    records.push_back(
        training_record("ddp", n, 1024 / n,
                        (1 + 1e-3 * static_cast<double>(n - 1) + 2.8e-6 * static_cast<double>(n * (n - 1))) /
                            static_cast<double>(n)));
  const MergedPoints points = merge_repeats({study_of(records)});
  const Table laws = scaling_laws_table(points, scaling_series(points));
  ASSERT_EQ(cell(laws, laws.rows.size() - 1, "law").text, "USL");
  // The peak is at sqrt((1 - 1e-3) / 2.8e-6) ranks.
  EXPECT_EQ(cell(laws, laws.rows.size() - 1, "beta value").text, "2.8e-06");
  EXPECT_EQ(cell(laws, laws.rows.size() - 1, "limit or peak value").text, "597");
}

TEST(ScalingSeries, TheSameRanksOnOtherNodesAreAnotherPoint) {
  StudyData spread = study_of({training_record("ddp", 2, 4, 0.5)});
  spread.environment.nodes = spread.environment.rank_nodes = {"a", "b"};
  const MergedPoints points = merge_repeats({study_of({training_record("ddp", 2, 4, 0.4)}), spread});
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].nodes, 1);
  EXPECT_EQ(points[1].nodes, 2);
}

TEST(ScalingSeries, PointsWithoutATimeAreLeftOut) {
  std::vector<Record> records = amdahl_records(0.1, 4);
  records[1].measures.step_s = 0;
  records[2].measures.step_s = Measures::kNone;
  const MergedPoints points = merge_repeats({study_of(records)});
  ASSERT_EQ(scaling_series(points).size(), 1u);
  EXPECT_EQ(scaling_series(points)[0].points.size(), 2u);
}

}  // namespace
}  // namespace shardmark
