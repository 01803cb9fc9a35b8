// Tests the warnings about single records and the findings about collectives that contradict each other. Each
// of them is provoked on purpose.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/findings/findings.h"
#include "analysis/overview/overview.h"
#include "analysis/report.h"
#include "analysis_fixture.h"
#include "schema/fields.h"
#include "schema/step_statistics.h"

namespace shardmark {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Returns an all-reduce, a reduce-scatter and an all-gather on 4 ranks for sizes from 1 KiB to 1 MiB, all
// with plausible times: 5 us + size / rate.
std::vector<Record> healthy_collectives() {
  std::vector<Record> records;
  for (const auto& [operation, gb_s] :
       {std::pair{"all_reduce", 4.0}, {"reduce_scatter", 7.0}, {"all_gather", 7.0}})
    for (int64_t bytes = 1024; bytes <= 1 << 20; bytes *= 4) {
      records.push_back(
          collective_record(operation, 4, bytes, true, 5e-6 + static_cast<double>(bytes) / gb_s / 1e9));
      if (operation == std::string("all_gather")) records.back().point.collective.reduction = "none";
    }
  return records;
}

std::vector<std::string> kinds(const std::vector<Record>& records) {
  const std::vector<StudyData> studies = {study_of(records)};
  const MergedPoints points = merge_repeats(studies);
  std::vector<std::string> kinds;
  for (const PointFinding& finding : findings_of(points)) kinds.push_back(finding.kind);
  return kinds;
}

TEST(Findings, AHealthyStudyHasNone) { EXPECT_THAT(kinds(healthy_collectives()), IsEmpty()); }

TEST(Findings, AMessageSlowerThanALargerOne) {
  auto records = healthy_collectives();
  records[0].measures.step_s =
      100e-6;  // 1 KiB; 64 KiB take only 21 us, 256 KiB and 1 MiB take longer than that
  const std::vector<StudyData> studies = {study_of(records)};
  const MergedPoints points = merge_repeats(studies);
  const auto findings = findings_of(points);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].kind, "order of sizes");
  EXPECT_EQ(findings[0].about->point.collective.bytes, 1024);
  EXPECT_EQ(findings[0].words, "takes 100 us; 4.00 KiB take only 6.02 us");
}

TEST(Findings, AMessageSlowerThanItsPieces) {
  auto records = healthy_collectives();
  Record& largest = records[5];  // all-reduce of 1 MiB; 4 messages of 256 KiB take 4 x 70.5 us
  ASSERT_EQ(largest.point.collective.bytes, 1 << 20);
  largest.measures.step_s = 2 * 4 * (5e-6 + 262144 / 4e9);
  const std::vector<StudyData> studies = {study_of(records)};
  const MergedPoints points = merge_repeats(studies);
  const auto findings = findings_of(points);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].kind, "slower than chunks");
  EXPECT_EQ(findings[0].words,
            "takes 2.0 times as long as 4 messages of 256 KiB would; also at 1 other size");
}

// The finding and its threshold must use the same scale. "23 % less" next to "less than 25 % longer is no
// finding" would look wrong, although a ratio of 1.3 means both.
TEST(Findings, AreMeasuredAsTheirThresholdIs) {
  auto records = healthy_collectives();
  records[5].measures.step_s = 1.3 * 4 * (5e-6 + 262144 / 4e9);
  const std::vector<StudyData> studies = {study_of(records)};
  const Table table = problems_table(studies, merge_repeats(studies), {}, {});
  ASSERT_FALSE(table.rows.empty());
  EXPECT_EQ(cell(table, 0, "concerns").text, "results to check");
  EXPECT_EQ(cell(table, 0, "what").text, "slower than chunks");
  EXPECT_EQ(cell(table, 0, "why").text, "takes 1.3 times as long as 4 messages of 256 KiB would");
  EXPECT_THAT(table.explanations[0], HasSubstr("ratios below 1.25"));
}

TEST(Findings, AnOperationSlowerThanItsParts) {
  auto records = healthy_collectives();
  for (Record& record : records)
    if (record.point.collective.operation == "all_reduce") record.measures.step_s *= 3;
  const std::vector<StudyData> studies = {study_of(records)};
  const MergedPoints points = merge_repeats(studies);
  const auto findings = findings_of(points);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].kind, "slower than parts");
  EXPECT_THAT(findings[0].words,
              HasSubstr("times as long as reduce_scatter + all_gather; also at 5 other sizes"));
}

TEST(Findings, InPlaceAgainstOutOfPlace) {
  const Record apart = collective_record("all_reduce", 4, 1 << 20, false, 1e-3);
  EXPECT_THAT(kinds({apart, collective_record("all_reduce", 4, 1 << 20, true, 1.2e-3)}), IsEmpty());
  const std::vector<StudyData> studies = {
      study_of({apart, collective_record("all_reduce", 4, 1 << 20, true, 2e-3)})};
  const MergedPoints points = merge_repeats(studies);
  const auto findings = findings_of(points);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].words, "in place takes 2.0 times as long as out of place");
}

TEST(Findings, WhatTheIntervalsAllowIsNone) {
  Record uncertain = collective_record("all_reduce", 4, 1 << 20, true, 2e-3);
  uncertain.measures.step_low_s = 1.85e-3;
  uncertain.measures.step_high_s = 2.1e-3;
  Record other = collective_record("all_reduce", 4, 1 << 20, false, 1.5e-3);
  other.measures.step_low_s = 1.4e-3;
  other.measures.step_high_s = 1.6e-3;
  EXPECT_THAT(kinds({uncertain, other}), ElementsAre("in place"));
  // The interval now overlaps and still lies within the limit of 10 % to 20 % beyond which a point counts as
  // uncertain.
  other.measures.step_high_s = 1.9e-3;
  other.measures.step_low_s = 1.6e-3;
  EXPECT_THAT(kinds({uncertain, other}), IsEmpty());
}

StudyData on_gpus(double busbw_gb_s) {
  const int64_t bytes = 256 << 20;
  Record record =
      collective_record("all_reduce", 4, bytes, true, static_cast<double>(bytes) * 1.5 / busbw_gb_s / 1e9);
  StudyData study = study_of({record});
  study.environment.devices.assign(4, "NVIDIA H200");
  study.environment.rank_nodes.assign(4, "node1");
  return study;
}

TEST(Findings, TheLinkRateOfAKnownDevice) {
  EXPECT_THAT(findings_of(merge_repeats({on_gpus(365)})), IsEmpty());
  const std::vector<StudyData> slow_study = {on_gpus(120)},
                               fast_study = {on_gpus(475)};  // the merged points refer to these
  const MergedPoints slow = merge_repeats(slow_study);
  ASSERT_EQ(findings_of(slow).size(), 1u);
  EXPECT_EQ(findings_of(slow)[0].words, "reaches 27 % of nvlink4's 450 GB/s; about 80 % is usual");
  const MergedPoints fast = merge_repeats(fast_study);
  EXPECT_THAT(findings_of(fast)[0].words, HasSubstr("reduced inside the switch"));
  EXPECT_NE(findings_of(fast)[0].kind, findings_of(slow)[0].kind);
  EXPECT_THAT(cautions_of(slow_study, slow, {}), ElementsAre(HasSubstr("below link rate: 1 point, ")));
  EXPECT_THAT(cautions_of(fast_study, fast, {}), IsEmpty());  // better than expected is not a warning
  StudyData unknown = on_gpus(120);
  unknown.environment.devices.assign(4, "Some accelerator");
  EXPECT_THAT(findings_of(merge_repeats({unknown})), IsEmpty());
}

// Adds the step times of two ranks to a record.
Record with_steps(Record record, const std::vector<double>& first, const std::vector<double>& second) {
  Series series{"step", 2, static_cast<int64_t>(first.size()), first};
  series.values.insert(series.values.end(), second.begin(), second.end());
  record.samples.push_back(series);
  return record;
}

std::vector<double> line(double from, double to) {
  std::vector<double> values(30, from);
  for (size_t i = 0; i < values.size(); ++i) values[i] += (to - from) * static_cast<double>(i) / 29;
  return values;
}

TEST(Warnings, CoresThatWereLost) {
  Record record = training_record("ddp", 2, 4, 0.1);
  const auto has_lost = [](const Record& one) {
    const auto warnings = warnings_of(one);
    return std::any_of(warnings.begin(), warnings.end(),
                       [](const Warning& warning) { return warning.kind == kLostCores; });
  };
  EXPECT_FALSE(has_lost(record)) << "a study of before has no such number";
  record.measures.preemptions_per_s = 6;
  EXPECT_FALSE(has_lost(record));
  record.measures.preemptions_per_s = 110;
  EXPECT_TRUE(has_lost(record));
  record.measures.oversubscribed = true;
  EXPECT_FALSE(has_lost(record)) << "its own ranks take the cores from each other";
}

TEST(Warnings, PreemptionsAreCountedOnTheRankThatHadMost) {
  Record record = training_record("ddp", 2, 4, 0.1);
  record.samples.push_back({"step", 2, 2, {1, 1, 1, 1}});
  record.samples.push_back({"window", 2, 2, {1, 1, 1, 1}});
  record.samples.push_back({"preemptions", 2, 2, {3, 1, 100, 120}});
  summarize(record);
  EXPECT_DOUBLE_EQ(record.measures.preemptions_per_s, 110);
}

// If other processes use the machine, all numbers are doubtful, so this caution comes first.
TEST(Doubts, OfABusyMachineComeBeforeTheNumbers) {
  std::vector<Record> records = healthy_collectives();
  records[0].outcome = Outcome::failed;
  records[0].reason = "rank 0: a crash";
  for (size_t i = 1; i < 4; ++i) records[i].measures.preemptions_per_s = 100 + static_cast<double>(i);
  std::vector<StudyData> studies = {study_of(records)};
  auto& facts = *studies[0].environment.facts;
  facts["busy"] = "other processes use 1.6 of 2 cores (load 7.7): times will be too long";
  facts["resumed"] = {{{"busy", "other processes use 0.5 of 2 cores (load 0.4): times will be too long"}},
                      {{"started", "later"}}};
  const auto points = merge_repeats(studies);
  const auto doubts = doubts_of(studies, points);
  ASSERT_EQ(doubts.size(), 2U);
  EXPECT_EQ(
      doubts[0],
      "Busy machine: before ranks computed, other processes use 1.6 of 2 cores (load 7.7): times will be "
      "too long. 1 other launch found it busy, too.");
  EXPECT_THAT(doubts[1], HasSubstr("Lost cores: in 3 of "));
  EXPECT_THAT(doubts[1], HasSubstr("up to 103 times a second"));
  const std::string screen = to_text(overview_of(studies, points, {}, {}), {});
  EXPECT_LT(screen.find("Busy machine"), screen.find("all_reduce"));
  for (const std::string& caution : cautions_of(studies, points, {}))
    EXPECT_THAT(caution, testing::Not(HasSubstr("lost cores"))) << "it is said once";
}

TEST(Warnings, DriftOfTheSteps) {
  const Record record = training_record("ddp", 2, 4, 0.1);
  const auto kind = [&](double from, double to) {
    const auto warnings = warnings_of(with_steps(record, line(from, to), line(from, to)));
    return warnings.empty() ? "" : warnings[0].kind;
  };
  EXPECT_EQ(kind(0.1, 0.101), "");
  EXPECT_EQ(kind(0.12, 0.1), "warming up");
  EXPECT_EQ(kind(0.1, 0.12), "slowing down");
}

// A difference of two clock ticks is no drift, whatever its percentage. Only GPUs throttle, so only they are
// warned about.
TEST(Warnings, DriftIsLongerThanTheClocksTicks) {
  const auto warnings = [](double from, double to, const char* transport = "mpi") {
    Record record = collective_record("all_reduce", 2, 1024, true, from);
    record.point.transport = transport;
    return warnings_of(with_steps(record, line(from, to), line(from, to)));
  };
  EXPECT_THAT(warnings(1.2e-6, 1.3e-6), IsEmpty());
  EXPECT_THAT(warnings(0.9e-6, 0.3e-6), IsEmpty());
  EXPECT_THAT(warnings(5e-6, 6e-6), IsEmpty());
  ASSERT_EQ(warnings(20e-6, 25e-6).size(), 1u);
  EXPECT_EQ(warnings(20e-6, 25e-6)[0].words, "getting slower: last third of the steps 17 % above the first");
  EXPECT_THAT(warnings(20e-6, 25e-6, "nccl")[0].words, HasSubstr("getting slower, possibly throttled: "));
}

TEST(Warnings, RanksThatEnterApart) {
  const auto warnings = [](const char* operation) {
    return warnings_of(
        with_steps(collective_record(operation, 2, 1024, true, 1e-3), line(1e-3, 1e-3), line(5e-4, 5e-4)));
  };
  ASSERT_EQ(warnings("all_reduce").size(), 1u);
  EXPECT_EQ(warnings("all_reduce")[0].words,
            "ranks start the operation at different times: its duration differs by 50 % between them");
  EXPECT_THAT(warnings("broadcast"), IsEmpty());  // the root may leave before the other ranks
}

TEST(Warnings, NumbersThatAreNone) {
  for (const double step_s : {0.0, -1.0, Measures::kNone, 1 / 0.0}) {
    Record record = training_record("ddp", 2, 4, 0.1);
    record.measures.step_s = step_s;
    ASSERT_EQ(warnings_of(record).size(), 1u);
    EXPECT_EQ(warnings_of(record)[0].kind, "no time");
  }
  const Record record = training_record("ddp", 2, 4, 0.1);
  EXPECT_EQ(warnings_of(with_steps(record, {0.1, 0.0}, {0.1, 0.1}))[0].kind, "broken samples");
  EXPECT_EQ(warnings_of(with_steps(record, {0.1, Measures::kNone}, {0.1, 0.1}))[0].kind, "broken samples");
  EXPECT_EQ(warnings_of(with_steps(record, {}, {}))[0].kind, "broken samples");
}

TEST(Warnings, AMeanThatIsNotTheMedian) {
  Record record = training_record("ddp", 2, 4, 0.1);
  const auto kind = [&](double samples_per_s) {
    record.measures.samples_per_s = samples_per_s;
    const auto warnings = warnings_of(record);
    return warnings.empty() ? "" : warnings[0].kind;
  };
  EXPECT_EQ(kind(8 / 0.109), "");
  EXPECT_EQ(kind(8 / 0.2), "mean differs");
  EXPECT_EQ(kind(8 / 0.05), "mean differs");
  for (const double none : {0.0, -1.0, Measures::kNone, 1 / 0.0}) EXPECT_EQ(kind(none), "") << none;
  record.measures.samples_per_s = 8 / 0.2;
  EXPECT_EQ(
      warnings_of(record)[0].words,
      "the average step, 200 ms, is 100 % above the median: samples/s and step time may rank it differently");
  const std::vector<StudyData> studies = {study_of({record})};
  const MergedPoints points = merge_repeats(studies);
  EXPECT_FALSE(is_unreliable(points[0]));  // the median can still be trusted
  EXPECT_EQ(cell(strategies_table(points), 0, "warnings").text, "mean differs");
}

TEST(Warnings, PartsThatAreLongerThanTheStep) {
  Record record = training_record("ddp", 2, 4, 0.1, 0.05);
  EXPECT_THAT(warnings_of(record), IsEmpty());
  for (const double exposed_s : {0.2, -0.1}) {
    record.measures.exposed_s = exposed_s;
    ASSERT_EQ(warnings_of(record).size(), 1u);
    EXPECT_EQ(warnings_of(record)[0].kind, "inconsistent phases");
    EXPECT_TRUE(warnings_of(record)[0].excludes);
  }
}

TEST(Warnings, AChoiceOfAutoByADisturbedProbe) {
  Record record = training_record("ddp", 2, 4, 0.075);
  record.point.training.chosen = "ddp";
  record.measures.probed_communication_s = 0.05;
  EXPECT_THAT(warnings_of(record), IsEmpty());
  record.measures.probed_communication_s = 1.37;
  ASSERT_EQ(warnings_of(record).size(), 1u);
  EXPECT_EQ(warnings_of(record)[0].kind, "disturbed probe");
  EXPECT_THAT(warnings_of(record)[0].words,
              HasSubstr("expected 1.37 s of communication, but the whole step takes 75.0 ms"));
}

TEST(Warnings, OfHalfTheRepeatsAreThePoints) {
  const Record good = training_record("ddp", 2, 4, 0.1);
  const Record drifting = with_steps(good, line(0.12, 0.1), line(0.12, 0.1));
  EXPECT_FALSE(is_unreliable(merge_repeats({study_of({good, good, drifting})})[0]));
  const MergedPoint point = merge_repeats({study_of({good, drifting})})[0];
  EXPECT_TRUE(is_unreliable(point));
  EXPECT_THAT(point.warnings[0].words, HasSubstr("(in 1 of 2 repeats)"));
}

std::string missing(const std::vector<Record>& records) {
  for (const Table& table : make_report({study_of(records)}))
    if (table.key == "problems") return to_text(table);
  return "";
}

TEST(Missing, IsSaidWithItsReason) {
  EXPECT_THAT(missing({}), HasSubstr("no point had finished"));
  Record failed = training_record("ddp", 2, 4, 0.1);
  failed.outcome = Outcome::failed;
  EXPECT_THAT(missing({failed, failed}), HasSubstr("no point has a result: 2 failed"));
  const std::string one_count =
      missing({training_record("ddp", 2, 4, 0.1), training_record("fsdp", 2, 4, 0.1)});
  EXPECT_THAT(one_count, HasSubstr("all points are on 2 ranks; a series needs two rank counts"));
  EXPECT_THAT(one_count, HasSubstr("no point on one rank"));
  EXPECT_THAT(missing({training_record("single", 1, 4, 0.1)}), HasSubstr("train independent"));
  Record untimed = training_record("ddp", 2, 4, 0);
  EXPECT_THAT(missing({untimed}), HasSubstr("1 of 1 points have none above 0"));
}

// The report is complete whatever the numbers of a record are, because files may contain anything.
TEST(Missing, BrokenNumbersNeverBreakTheReport) {
  for (const double value : {0.0, -1.0, Measures::kNone, 1 / 0.0, 1e-320, 1e308}) {
    std::vector<Record> records;
    for (int64_t ranks : {1, 2, 4, 8, 16}) {
      Record record = training_record("ddp", ranks, 16 / ranks, 0.1);
      visit_fields(record, [&]<class T>(auto, auto, auto, T& member) {
        if constexpr (std::is_same_v<T, double>) member = value;
      });
      records.push_back(with_steps(record, {value, value}, {value, value}));
      records.push_back(collective_record("all_reduce", ranks, ranks, true, value));
    }
    for (const Table& table : make_report({study_of(records)})) {
      EXPECT_FALSE(to_text(table).empty());
      EXPECT_EQ(to_text(table).find("nan"), std::string::npos) << to_text(table);
      EXPECT_EQ(to_text(table).find("inf "), std::string::npos) << to_text(table);
    }
  }
}

}  // namespace
}  // namespace shardmark
