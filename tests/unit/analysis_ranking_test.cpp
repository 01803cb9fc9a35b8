// Tests how the fastest point is determined. One launch is never enough; several launches are compared with
// the test of `compare`. If a point has too few steps for a confidence interval, no interval is used
// anywhere.
#include <gmock/gmock.h>

#include <algorithm>

#include "analysis/findings/findings.h"
#include "analysis/overview/overview.h"
#include "analysis/page/page.h"
#include "analysis/plots/plots.h"
#include "analysis/report.h"
#include "analysis/stats/ranking.h"
#include "analysis_fixture.h"
#include "schema/step_statistics.h"

namespace shardmark {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Returns a launch in which each strategy has this step time.
StudyData launch(int number, const std::vector<std::pair<std::string, double>>& steps_s) {
  std::vector<Record> records;
  for (const auto& [strategy, step_s] : steps_s) records.push_back(training_record(strategy, 2, 4, step_s));
  StudyData study = study_of(std::move(records), "results/" + std::to_string(number) + ".h5");
  study.environment.started = "2026-01-01T00:0" + std::to_string(number) + ":00Z";
  return study;
}

std::string screen_of_ranking(const std::vector<StudyData>& studies) {
  const auto points = merge_repeats(studies);
  return to_text(overview_of(studies, points, {}, scaling_series(points)), {.width = 300});
}

std::vector<std::string> verdicts(const std::vector<StudyData>& studies) {
  const auto points = merge_repeats(studies);
  std::vector<std::string> texts;
  const OverviewTable table = training_overview(points);
  for (const auto& row : table.groups.at(0).rows) texts.push_back(row.at(2).text);
  return texts;
}

TEST(Ranking, OfOneLaunchIsMarkedHoweverFarApart) {
  const std::vector<StudyData> one = {launch(0, {{"ddp", 0.1}, {"fsdp", 0.134}, {"zero3", 0.5}})};
  EXPECT_THAT(verdicts(one), ElementsAre("+0 % ?", "+34 % ?", "+400 % ?"));
  const std::string text = screen_of_ranking(one);
  EXPECT_THAT(
      text,
      HasSubstr(
          "?: 1 launch cannot tell this row from the fastest, because steps differ more between launches"));
  EXPECT_THAT(text, HasSubstr("start the suite 3 times or more and pass all studies to report"));
  EXPECT_THAT(make_page(ReportData(one)), HasSubstr("?: 1 launch cannot tell this row from the fastest"));
}

TEST(Ranking, OfSeveralLaunchesIsTheirTest) {
  std::vector<StudyData> studies;
  for (int i = 0; i < 5; ++i) {
    const double luck = 1 + 0.01 * ((2 * i) % 5 - 2), other = 1 + 0.01 * ((3 * i) % 5 - 2);
    studies.push_back(launch(i, {{"ddp", 0.1 * luck}, {"fsdp", 0.101 * other}, {"zero3", 0.15 * luck}}));
    if (i == 1) {
      EXPECT_THAT(verdicts(studies), testing::Each(testing::EndsWith(" ?")));
    }
  }
  EXPECT_THAT(verdicts(studies), ElementsAre("+0 % ?", "+1 % ?", "+50 %"));
  EXPECT_THAT(screen_of_ranking(studies), HasSubstr("?: 5 launches do not tell this row from the fastest"));
  for (StudyData& study : studies) study.records.erase(study.records.begin() + 1);  // without fsdp
  EXPECT_THAT(verdicts(studies), ElementsAre("fastest", "+50 %"));
  EXPECT_THAT(screen_of_ranking(studies), Not(HasSubstr("?: ")));
}

// If the launches of one row scatter widely, the rows before it are marked, too.
TEST(Ranking, MarksAreAtTheTop) {
  std::vector<StudyData> studies;
  for (int i = 0; i < 5; ++i) {
    const double luck = 1 + 0.001 * i, lot = 1 + 0.4 * ((2 * i) % 5 - 2);
    studies.push_back(launch(i, {{"ddp", 0.1 * luck}, {"fsdp", 0.12 * luck}, {"zero3", 0.13 * lot}}));
  }
  EXPECT_THAT(verdicts(studies), ElementsAre("+0 % ?", "+20 % ?", "+30 % ?"));
}

TEST(Ranking, LaunchesThatLackAPointDoNotRankIt) {
  std::vector<StudyData> studies;
  for (int i = 0; i < 5; ++i) {
    studies.push_back(launch(i, {{"ddp", 0.1 + 1e-4 * i}, {"fsdp", 0.2 + 1e-4 * i}}));
    if (i == 0) studies.back().records.push_back(training_record("zero3", 2, 4, 0.15));
  }
  EXPECT_THAT(verdicts(studies), ElementsAre("+0 % ?", "+50 % ?", "+100 %"));
  EXPECT_EQ(num_perhaps_fastest({}), 0u);
}

// Returns the record with these step times of one rank as its samples, summarized as a run does it.
Record with_steps(Record record, const std::vector<double>& steps) {
  record.samples = {{"step", 1, static_cast<int64_t>(steps.size()), steps}};
  summarize(record);
  return record;
}

Record of_few_steps() {
  return with_steps(training_record("ddp", 2, 4, 0.1), {0.1, 0.101, 0.099, 0.1, 0.104});
}

TEST(FewSteps, HaveNoIntervalAnywhere) {
  EXPECT_FALSE(of_few_steps().measures.has_interval());
  const std::vector<StudyData> studies = {study_of(
      {of_few_steps(), with_steps(training_record("fsdp", 2, 4, 0.1), {0.2, 0.2, 0.2, 0.2, 0.2, 0.21}),
       with_steps(training_record("ddp", 1, 4, 0.1), {0.1, 0.1, 0.1})})};
  const auto points = merge_repeats(studies);
  const Table table = strategies_table(points);
  for (size_t row = 0; row < table.rows.size(); ++row) {
    const bool has = cell(table, row, "strategy").text == "fsdp";
    EXPECT_EQ(cell(table, row, "step time low").text == "-", !has);
    EXPECT_EQ(cell(table, row, "step time high").value.is_nothing(), !has);
  }
  EXPECT_THAT(table.notes, testing::Contains(HasSubstr("2 rows are of fewer than 6 steps")));
  const Table weak = scaling_table(Scaling::weak, points, scaling_series(points));
  EXPECT_EQ(cell(weak, 1, "efficiency low").text, "-");
  for (const Plot& plot : make_plots(studies))
    for (const Curve& curve : plot.curves)
      for (const PlotPoint& point : curve.points)
        if (curve.name.find("fsdp") == std::string::npos && plot.rows.empty()) {
          EXPECT_FALSE(std::isfinite(point.low) && point.low < point.value) << plot.title;
        }
  EXPECT_THAT(screen_of_ranking(studies),
              HasSubstr("1 row is of 5 steps, and fewer than 6 steps have no 95 % interval"));
}

// If one of three repeats has no interval, the merged point has none.
TEST(FewSteps, OfARepeatLeaveThePointWithoutInterval) {
  std::vector<Record> records(3, training_record("ddp", 2, 4, 0.1));
  for (int64_t i = 0; i < 3; ++i) {
    records[static_cast<size_t>(i)].point.repeat = i;
    records[static_cast<size_t>(i)].id = point_id(records[static_cast<size_t>(i)].point);
  }
  EXPECT_TRUE(merge_repeats({study_of(records)}).at(0).measures.has_interval());
  records[1] = with_steps(records[1], {0.1, 0.1, 0.1, 0.1, 0.1});
  EXPECT_FALSE(merge_repeats({study_of(records)}).at(0).measures.has_interval());
}

// If few steps differ a lot, their median is uncertain. Collectives are not judged by a few operations.
TEST(FewSteps, ThatDifferAreUncertain) {
  EXPECT_THAT(warnings_of(of_few_steps()), IsEmpty());
  const auto warnings = warnings_of(with_steps(training_record("ddp", 2, 4, 0.1), {0.1, 0.1, 0.13}));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0].kind, "uncertain");
  EXPECT_EQ(warnings[0].words, "the median is uncertain: its 3 steps took 100 ms to 130 ms");
  EXPECT_TRUE(warnings[0].excludes);
  const std::vector<StudyData> studies = {
      study_of({with_steps(collective_record("all_reduce", 4, 1 << 20, true, 1e-3), {1e-3, 1e-3, 1e-3}),
                with_steps(collective_record("all_reduce", 4, 1 << 20, false, 2e-3), {2e-3, 2e-3, 2e-3})})};
  EXPECT_THAT(findings_of(merge_repeats(studies)), IsEmpty());
}

}  // namespace
}  // namespace shardmark
