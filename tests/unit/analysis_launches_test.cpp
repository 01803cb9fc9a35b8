// Tests how a study becomes one step time per point and launch: what counts as a launch, as a point and as a
// time. Also tests that baselines are read back as they were written.
#include <gmock/gmock.h>

#include "analysis/compare/tables.h"
#include "analysis/frame/launches.h"
#include "analysis/stats/baseline.h"
#include "analysis_fixture.h"
#include "schema_fixture.h"

namespace shardmark {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Record repeat_of(int64_t repeat, double step_s, const std::string& started = "") {
  Record record = training_record("ddp", 2, 4, step_s);
  record.point.repeat = repeat;
  record.started = started;
  record.id = point_id(record.point);
  return record;
}

StudyData launch(const std::string& started, std::vector<Record> records) {
  StudyData study = study_of(std::move(records));
  study.environment.started = started;
  return study;
}

const LaunchTimes& only_point(const Launches& launches) {
  EXPECT_EQ(launches.points.size(), 1u);
  return launches.points.begin()->second;
}

TEST(Launches, RepeatsOfALaunchAreOneTime) {
  const Launches launches =
      launches_of({launch("2026-01-01T01:00:00Z", {repeat_of(0, 1), repeat_of(1, 5), repeat_of(2, 2)}),
                   launch("2026-01-01T02:00:00Z", {repeat_of(0, 3)})});
  EXPECT_THAT(only_point(launches).step_s, ElementsAre(2, 3));
  EXPECT_EQ(only_point(launches).name,
            "training gpt2(layers=4, width=256, heads=4, sequence=128, vocabulary=8192) ddp 2 ranks batch 4");
}

TEST(Launches, ACopyIsNoFurtherLaunch) {
  const StudyData study = launch("2026-01-01T01:00:00Z", {repeat_of(0, 1)});
  EXPECT_THAT(only_point(launches_of({study, study, study})).step_s, ElementsAre(1));
}

TEST(Launches, AResumedStudyIsSeveral) {
  StudyData study = launch("2026-01-01T01:00:00Z",
                           {repeat_of(0, 1, "2026-01-01T01:10:00Z"), repeat_of(1, 2, "2026-01-02T01:10:00Z"),
                            repeat_of(2, 4, "2026-01-03T01:10:00Z")});
  (*study.environment.facts)["resumed"] = {{{"started", "2026-01-02T01:00:00Z"}},
                                           {{"started", "2026-01-03T01:00:00Z"}},
                                           "nonsense",
                                           {{"started", 7}}};
  EXPECT_THAT(only_point(launches_of({study})).step_s, ElementsAre(1, 2, 4));
}

TEST(Launches, WhatIsNoTimeIsNamed) {
  for (const double bad : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    const LaunchTimes point = only_point(launches_of({launch("a", {repeat_of(0, bad)})}));
    EXPECT_TRUE(point.step_s.empty());
    EXPECT_EQ(point.missing, "ok, but without a step time");
  }
  Record failed = repeat_of(0, 1);
  failed.outcome = Outcome::failed;
  failed.reason = "a rank died";
  EXPECT_EQ(only_point(launches_of({launch("a", {failed})})).missing, "failed: a rank died");
  EXPECT_EQ(only_point(launches_of({launch("a", {failed, repeat_of(1, 1)})})).missing, "");
}

TEST(Launches, OfOneMachineOnly) {
  StudyData other = study_of({repeat_of(0, 1)}, "other.h5");
  other.environment.devices = {"Other CPU"};
  EXPECT_THAT(usage_error([&] {
                launches_of({study_of({repeat_of(0, 1)}), other});
              }),
              HasSubstr("come from different machines"));
}

TEST(Launches, SayWhatTheirEnvironmentsDifferIn) {
  StudyData before = launch("a", {repeat_of(0, 1)}), after = launch("b", {repeat_of(0, 1)});
  *before.environment.versions = {{"torch", "2.11"}, {"mpi", "4.1"}};
  *after.environment.versions = {{"torch", "2.12"}, {"mpi", "4.1"}};
  *after.environment.variables = {{"NCCL_ALGO", "Ring"}, {"OMPI_MCA_orte_hnp_uri", "17"}};
  const Table table = environment_table(launches_of({before}), launches_of({after}));
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(cell(table, 0, "what").text, "NCCL_ALGO");
  EXPECT_EQ(cell(table, 0, "before").text, "-");
  EXPECT_EQ(cell(table, 1, "after").text, "2.12");
}

TEST(Comparison, CountsWhatItMatched) {
  Record strong = repeat_of(0, 1.3), failed = training_record("zero3", 2, 4, 1);
  strong.point.training.scaling = "strong";  // the same global batch, described differently
  const Record other = training_record("ddp", 4, 4, 1), lost = failed;
  failed.outcome = Outcome::out_of_memory;
  std::vector<StudyData> before, after;
  for (const std::string start : {"1", "2", "3", "4"}) {
    before.push_back(launch(start, {repeat_of(0, 1), lost, other}));
    after.push_back(launch(start + "b", {strong, failed}));
  }
  const ComparisonReport report = compare_sides(launches_of(before), launches_of(after), after, 0.05);
  EXPECT_EQ(report.num_slower, 1u);
  EXPECT_EQ(report.num_lost, 1u);
  EXPECT_EQ(cell(report.tables[0], 0, "points").value, 1);
  EXPECT_EQ(cell(report.tables[1], 0, "verdict").text, "SLOWER");
  EXPECT_EQ(report.tables[2].key, "one_sided");
  EXPECT_EQ(report.tables[2].rows.size(), 2u);  // the point that failed after the change, and ddp on 4 ranks
  const std::vector<StudyData> none = {launch("1", {other})};
  EXPECT_THAT(usage_error([&] { compare_sides(launches_of(after), launches_of(none), none, 0.05); }),
              HasSubstr("nothing to compare"));
}

// An interval such as -97.9 ... +488352.3 % tells nothing but looks precise, so the text says "any".
TEST(Comparison, SaysWhereLaunchesTellNothing) {
  std::vector<StudyData> before, after;
  double step_s = 1e-3;
  for (const std::string start : {"1", "2", "3"}) {
    before.push_back(launch(start, {repeat_of(0, step_s)}));
    after.push_back(launch(start + "b", {repeat_of(0, 2 * step_s)}));
    step_s *= 30;
  }
  const ComparisonReport report = compare_sides(launches_of(before), launches_of(after), after, 0.05);
  const auto found = std::find_if(report.tables.begin(), report.tables.end(),
                                  [](const Table& table) { return table.key == "compared_training"; });
  ASSERT_NE(found, report.tables.end());
  EXPECT_EQ(cell(*found, 0, "low").text, "any");
  EXPECT_EQ(cell(*found, 0, "high").text, "any");
  EXPECT_EQ(cell(*found, 0, "detectable").text, "nothing");
  EXPECT_GT(cell(*found, 0, "high").value.get<double>(), 900);  // the value for programs is still the number
}

TEST(Launches, AreNoMoreThanTheExactTestTakes) {
  std::vector<StudyData> studies;
  for (size_t i = 0; i < kMostLaunches; ++i) studies.push_back(launch(std::to_string(i), {repeat_of(0, 1)}));
  EXPECT_EQ(launches_of(studies).started.size(), kMostLaunches);
  studies.push_back(launch("one more", {repeat_of(0, 1)}));
  EXPECT_THAT(usage_error([&] { launches_of(studies); }),
              HasSubstr("101 launches on one side; at most 100 are compared: give the latest"));
}

TEST(Baseline, GivesBackWhatWasWritten) {
  const Launches launches =
      launches_of({launch("a", {repeat_of(0, 0.125)}), launch("b", {repeat_of(0, 0.25)})});
  Launches other = launches;
  other.machine = "another machine";
  const std::string text = to_baseline(other, to_baseline(launches, "", "b.json").text, "b.json").text;
  const Launches read = read_baseline(text, launches.machine, "b.json");
  EXPECT_EQ(read.started, launches.started);
  EXPECT_EQ(read.environment, launches.environment);
  EXPECT_THAT(only_point(read).step_s, ElementsAre(0.125, 0.25));
  EXPECT_EQ(read_baseline(text, other.machine, "b.json").points.size(), 1u);
}

TEST(Baseline, AReferenceAloneIsEnough) {
  const std::string text =
      R"({"shardmark_baseline": 1, "machines": {"m": {"started": {}, "environment": {}, "points":
    {"x": {"name": "x", "reference": {"value": 2, "lower": null, "upper": 3}}}}}})";
  const LaunchTimes point = only_point(read_baseline(text, "m", "b.json"));
  EXPECT_THAT(point.step_s, ElementsAre(2));
  EXPECT_TRUE(std::isnan(point.reference->lower));
  EXPECT_EQ(point.reference->upper, 3);
}

TEST(Baseline, NamesThePlaceOfAMistake) {
  const auto message = [](const std::string& machine) {
    return usage_error([&] {
      read_baseline(R"({"shardmark_baseline": 1, "machines": {"m": )" + machine + "}}", "m", "b.json");
    });
  };
  EXPECT_EQ(message("7"), "b.json: machines.m: expected an object");
  const std::string head = R"({"started": {}, "environment": {}, "points": {"x": )";
  EXPECT_EQ(message(head + "[]}}"), "b.json: machines.m.points.x: expected an object");
  EXPECT_EQ(message(head + "{}}}"),
            "b.json: machines.m.points.x.step_s: expected a step time in seconds for each launch");
  EXPECT_EQ(message(head + R"({"step_s": ["1"]}}})"),
            "b.json: machines.m.points.x.step_s: expected seconds, more than 0");
  EXPECT_EQ(message(head + R"({"step_s": [1], "reference": {}}}})"),
            "b.json: machines.m.points.x.reference.value: expected seconds, more than 0");
}

}  // namespace
}  // namespace shardmark
