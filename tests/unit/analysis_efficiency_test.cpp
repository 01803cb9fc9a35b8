// Tests the scaling efficiency: each value names the point it is relative to, and the first screen, the page
// and the tables show the same value. An efficiency that no machine can explain becomes a finding.
#include <gmock/gmock.h>

#include "analysis/findings/findings.h"
#include "analysis/overview/overview.h"
#include "analysis/page/page.h"
#include "analysis/report.h"
#include "analysis_fixture.h"

namespace shardmark {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Run {
  int64_t ranks;
  double samples_per_s;
  const char* strategy = "ddp";
};

// Returns a study of weak scaling with 8 samples per rank, on nodes of 8 ranks. It has no confidence
// intervals, as if it was imported.
StudyData study_on_nodes(const std::vector<Run>& runs, bool is_strong = false) {
  std::vector<Record> records;
  for (const Run& run : runs) {
    const int64_t batch = is_strong ? 512 / run.ranks : 8;
    records.push_back(training_record(run.strategy, run.ranks, batch,
                                      static_cast<double>(run.ranks * batch) / run.samples_per_s));
    records.back().measures.flops_per_step = 1e6;  // so low that the peak of the device gives no warning
    records.back().measures.step_low_s = records.back().measures.step_high_s = Measures::kNone;
    if (is_strong) records.back().point.training.scaling = "strong";
  }
  StudyData study = study_of(std::move(records));
  Environment& e = study.environment;
  e.nodes.clear();
  for (const char* node : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
    e.nodes.emplace_back(node);
    e.rank_nodes.insert(e.rank_nodes.end(), 8, node);
  }
  e.world_ranks = 64;
  e.devices.assign(64, "Some GPU");
  return study;
}

// The efficiency of each row of the first screen on so many ranks.
std::vector<std::string> on_screen(const OverviewTable& table, const std::string& name) {
  std::vector<std::string> texts;
  for (size_t c = 0; c < table.columns.size(); ++c)
    if (table.columns[c].name == name) {
      for (const OverviewGroup& group : table.groups)
        for (const auto& row : group.rows) texts.push_back(row.at(c).text);
    }
  return texts;
}

// 16 ranks fill two nodes, so the point also belongs to a series over nodes. There, the base is one node and
// the efficiency is 100 %.
TEST(Efficiency, OfTheFirstScreenIsAgainstTheFewestRanks) {
  for (const bool is_strong : {false, true}) {
    const std::vector<StudyData> studies = {study_on_nodes({{1, 100}, {8, 400}, {16, 800}}, is_strong)};
    const auto points = merge_repeats(studies);
    const auto series = scaling_series(points);
    const OverviewTable screen = scaling_overview(points, series);
    EXPECT_EQ(screen.title, "Scaling: efficiency, 1 rank = 100 %");
    EXPECT_THAT(on_screen(screen, "16 ranks"), ElementsAre("50"));
    const Table table = scaling_table(is_strong ? Scaling::strong : Scaling::weak, points, series);
    size_t num_rows = 0;
    for (size_t row = 0; row < table.rows.size(); ++row)
      if (cell(table, row, "over").text == "ranks" && cell(table, row, "ranks").text == "16") {
        ++num_rows;
        EXPECT_EQ(cell(table, row, "efficiency median").text, "50.0");
        EXPECT_EQ(cell(table, row, "base n0").text, "1");
      }
    EXPECT_EQ(num_rows, 1u);
    EXPECT_THAT(make_page(ReportData(studies)), HasSubstr("Scaling: efficiency, 1 rank = 100 %"));
  }
}

// Only ddp was measured on one rank.
TEST(Efficiency, NamesTheBaseOfEachRowWhereTheyDiffer) {
  const std::vector<StudyData> studies = {study_on_nodes({{1, 100},
                                                          {8, 400},
                                                          {16, 800},
                                                          {8, 400, "fsdp"},
                                                          {16, 720, "fsdp"},
                                                          {2, 120, "zero3"},
                                                          {16, 480, "zero3"}})};
  const auto points = merge_repeats(studies);
  const OverviewTable screen = scaling_overview(points, scaling_series(points));
  EXPECT_EQ(screen.title, "Scaling: efficiency, the fewest ranks of a row = 100 %");
  EXPECT_THAT(on_screen(screen, "16 ranks"), ElementsAre("50", "50", "90"));
  EXPECT_THAT(on_screen(screen, "8 ranks"), ElementsAre("50", "-", "100"));
  EXPECT_THAT(on_screen(screen, "2 ranks"), ElementsAre("-", "100", "-"));
}

std::vector<std::string> kinds(const std::vector<StudyData>& studies) {
  const auto points = merge_repeats(studies);
  std::vector<std::string> kinds;
  for (const PointFinding& finding : findings_of(points))
    kinds.push_back(finding.kind + ": " + finding.words);
  return kinds;
}

TEST(Efficiency, ThatNoMachineExplainsIsAFinding) {
  EXPECT_THAT(kinds({study_on_nodes({{8, 800}, {16, 1540}, {32, 3000}, {64, 5900}})}), IsEmpty());
  EXPECT_THAT(
      kinds({study_on_nodes({{8, 800}, {16, 1704}, {32, 3000}})}),
      ElementsAre("efficiency above 100 %: efficiency of weak scaling over nodes of 8 ranks is 106.5 %: "
                  "with fewer ranks each should be as fast or faster, so look at the base, 8 ranks"));
  EXPECT_THAT(
      kinds({study_on_nodes({{8, 800}, {16, 1400}, {32, 2665.6}, {64, 5753.6}}, true)}),
      ElementsAre("efficiency rises: efficiency of strong scaling over nodes of 8 ranks rises from 83.3 % "
                  "on 32 ranks to 89.9 %: was something else slow on 32 ranks?"));
  const std::vector<StudyData> studies = {study_on_nodes({{8, 800}, {16, 1704}, {32, 3000}})};
  EXPECT_THAT(cautions_of(studies, merge_repeats(studies), {}),
              testing::Contains(HasSubstr("efficiency above 100 %: 1 point, ")));
}

// Nothing is found if the confidence intervals of the steps allow for the difference, or if the point is
// unreliable.
TEST(Efficiency, ThatNoiseExplainsIsNoFinding) {
  StudyData study = study_on_nodes({{8, 800}, {16, 1704}});
  for (Record& record : study.records) {
    record.measures.step_low_s = 0.95 * record.measures.step_s;
    record.measures.step_high_s = 1.05 * record.measures.step_s;
  }
  EXPECT_THAT(kinds({study}), IsEmpty());
  study.records[0].measures.step_low_s = 0.999 * study.records[0].measures.step_s;
  study.records[1].measures.step_high_s = 1.001 * study.records[1].measures.step_s;
  EXPECT_EQ(kinds({study}).size(), 1u);
  study.records[0].measures.unaccounted = true;
  for (const std::string& kind : kinds({study})) EXPECT_THAT(kind, testing::Not(HasSubstr("efficiency")));
}

// In a series over nodes, n counts nodes, and T(1) is the time of one node with 8 ranks.
TEST(Efficiency, SpeedUpOverNodesIsAsItsDefinition) {
  const std::vector<StudyData> studies = {study_on_nodes({{8, 800}, {16, 1400}, {64, 5104}}, true)};
  const auto points = merge_repeats(studies);
  const Table table = scaling_table(Scaling::strong, points, scaling_series(points));
  EXPECT_EQ(cell(table, 2, "over").text, "nodes of 8 ranks");
  EXPECT_NEAR(cell(table, 2, "speed-up").value.get<double>(), 6.38, 1e-9);
  EXPECT_NEAR(cell(table, 2, "Karp-Flatt").value.get<double>(), (1 / 6.38 - 1. / 8) / (1 - 1. / 8), 1e-9);
  std::string definition;
  for (const Column& column : table.columns)
    if (column.name == "speed-up") definition = column.definition;
  EXPECT_THAT(definition, HasSubstr("over nodes n counts nodes"));
}

}  // namespace
}  // namespace shardmark
