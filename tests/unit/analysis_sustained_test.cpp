// Tests the findings about sustained runs. Noise is no finding. Drifts, throttled clocks, and ranks that are
// slow or become slow are found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "analysis/findings/findings.h"
#include "analysis/plots/plots.h"
#include "analysis/stats/sustained.h"
#include "analysis_fixture.h"

namespace shardmark {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr int64_t kRanks = 8, kIntervals = 100;
constexpr double kDuration = 7200, kStep = 0.1, kCompute = 0.07;

// The factor on the times of a rank in an interval.
using Factor = std::function<double(int64_t rank, int64_t interval)>;

double steady(int64_t, int64_t) { return 1; }

// AR(1) noise, in which neighbouring values are correlated. All ranks share the noise of the step because
// they wait for each other. The compute time of each rank has its own noise.
struct Noise {
  double deviation = 0.01;
  double correlation = 0.4;
};

void add_series(Record& record, const char* name, int64_t rows, std::vector<double> values) {
  record.samples.push_back({name, rows, kIntervals, std::move(values)});
}

Record sustained_record(uint32_t seed, const Factor& step = steady, const Factor& compute = steady,
                        const Noise& noise = {}) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  const double fresh = std::sqrt(1 - noise.correlation * noise.correlation);
  Record record = training_record("ddp", kRanks, 4, kStep);
  record.point.sampling.duration_s = kDuration;
  std::vector<double> ends, steps(kRanks * kIntervals), computing;
  double common = normal(random);
  for (int64_t k = 0; k < kIntervals; ++k) {
    ends.push_back(kDuration * static_cast<double>(k + 1) / kIntervals);
    common = noise.correlation * common + fresh * normal(random);
    for (int64_t rank = 0; rank < kRanks; ++rank)
      steps[static_cast<size_t>(rank * kIntervals + k)] =
          kStep * step(rank, k) * std::exp(noise.deviation * (common + 0.1 * normal(random)));
  }
  for (int64_t rank = 0; rank < kRanks; ++rank) {
    double own = normal(random);
    for (int64_t k = 0; k < kIntervals; ++k) {
      own = noise.correlation * own + fresh * normal(random);
      computing.push_back(kCompute * compute(rank, k) * std::exp(noise.deviation * own));
    }
  }
  add_series(record, "interval_end", 1, std::move(ends));
  add_series(record, "interval_time", kRanks, std::move(steps));
  add_series(record, "interval_compute", kRanks, std::move(computing));
  return record;
}

// Returns a study of this record, with 2 ranks per node.
StudyData study_with(Record record) {
  StudyData study = study_of({std::move(record)});
  for (int64_t rank = 0; rank < kRanks; ++rank)
    study.environment.rank_nodes.push_back("node" + std::to_string(rank / 2));
  study.environment.nodes = {"node0", "node1", "node2", "node3"};
  study.environment.devices.assign(kRanks, "Some CPU");
  return study;
}

std::vector<std::string> findings_in(const Record& record) {
  const std::vector<StudyData> studies = {study_with(record)};
  std::vector<std::string> words;
  for (const PointFinding& finding : findings_of(merge_repeats(studies)))
    words.push_back(finding.kind + ": " + finding.words);
  return words;
}

// At most 0.1 % of runs without a change are said to drift, and at most 0.1 % to have a rank that changed.
// The noise is 0.5, 1 and 3 %.
TEST(Sustained, NoiseIsNoFinding) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const double deviation = seed % 3 == 0 ? 0.005 : seed % 3 == 1 ? 0.01 : 0.03;
    EXPECT_THAT(findings_in(sustained_record(seed, steady, steady, {deviation, 0.4})), ::testing::IsEmpty())
        << seed;
  }
}

TEST(Sustained, ADriftIsFoundWithItsSize) {
  int found = 0;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const auto words = findings_in(sustained_record(
        seed, [](int64_t, int64_t k) { return 1 + 0.05 * static_cast<double>(k) / kIntervals; }));
    found += !words.empty() && words.front().find("slower over time: became") == 0 &&
             words.front().find("slower within 2 h (") != std::string::npos;
  }
  EXPECT_GE(found, 16);
}

TEST(Sustained, AStepIsADriftToo) {
  const std::vector<StudyData> studies = {
      study_with(sustained_record(1, [](int64_t, int64_t k) { return k < 70 ? 1 : 1.08; }))};
  const auto runs = sustained_runs(merge_repeats(studies));
  ASSERT_EQ(runs.size(), 1);
  EXPECT_TRUE(runs[0].is_drift);
  EXPECT_NEAR(runs[0].change_ratio(), 0.08, 0.02);
  ASSERT_TRUE(runs[0].change);
  EXPECT_LT(runs[0].change->low, 0.08);
  EXPECT_GT(runs[0].change->high, 0.08);
  ASSERT_TRUE(runs[0].drift);
  EXPECT_GT(runs[0].drift->slope, 0);
}

TEST(Sustained, ARankThatBecomesSlowIsNamedWithItsTime) {
  for (uint32_t seed = 0; seed < 20; ++seed)
    EXPECT_THAT(findings_in(sustained_record(
                    seed, steady, [](int64_t rank, int64_t k) { return rank == 5 && k >= 58 ? 1.12 : 1; })),
                Contains(::testing::ContainsRegex("slow rank: rank 5 of node2 is 1[0-4] % slower since 1 h "
                                                  "(9|10|11) min")))
        << seed;
}

TEST(Sustained, ARankThatIsSlowAllTheTimeOrUntilItIsMended) {
  EXPECT_THAT(
      findings_in(sustained_record(3, steady, [](int64_t rank, int64_t) { return rank == 0 ? 1.2 : 1; })),
      Contains(HasSubstr("rank 0 of node0 is 2")));
  EXPECT_THAT(
      findings_in(sustained_record(3, steady, [](int64_t rank, int64_t) { return rank == 0 ? 1.2 : 1; })),
      Contains(HasSubstr("% slower all the time")));
  EXPECT_THAT(findings_in(sustained_record(
                  4, steady, [](int64_t rank, int64_t k) { return rank == 0 && k < 50 ? 1.2 : 1; })),
              Contains(HasSubstr("% slower until 1 h")));
}

TEST(Sustained, ANodeWhoseRanksAreAllSlowIsOneFinding) {
  const auto words = findings_in(sustained_record(
      5, steady, [](int64_t rank, int64_t k) { return rank / 2 == 3 && k >= 30 ? 1.15 : 1; }));
  ASSERT_EQ(words.size(), 1);
  EXPECT_THAT(words[0], HasSubstr("slow node: node node3 is 1"));
  EXPECT_THAT(words[0], HasSubstr("since 36 min"));
}

// Rank 2 is throttled by heat in all readings from interval 50 on. All ranks reach their power cap in half of
// the readings.
Record throttled_record() {
  Record record = sustained_record(6);
  std::vector<double> bits, shares, clocks;
  for (int64_t rank = 0; rank < kRanks; ++rank)
    for (int64_t k = 0; k < kIntervals; ++k) {
      const bool is_hot = rank == 2 && k >= 50;
      bits.push_back(is_hot ? 64 : 4);
      shares.push_back(is_hot ? 1 : 0.5);
      clocks.push_back(k < 50 ? 1980 : 1700);
    }
  add_series(record, "interval_throttle", kRanks, bits);
  add_series(record, "interval_throttled", kRanks, shares);
  add_series(record, "interval_clock", kRanks, clocks);
  return record;
}

TEST(Sustained, HeatIsAFindingAndAPowerCapIsNot) {
  const auto words = findings_in(throttled_record());
  ASSERT_EQ(words.size(), 1);
  EXPECT_EQ(
      words[0],
      "throttled: heat (hardware) held the clock of rank 2 of node1 down 50 % of the time, first within "
      "1 h 1 min");
  const std::vector<StudyData> studies = {study_with(throttled_record())};
  const auto points = merge_repeats(studies);
  const auto tables = sustained_tables(points, {});
  ASSERT_EQ(tables.size(), 3);
  EXPECT_NEAR(cell(tables[0], 0, "throttled").value.get<double>(), 100 * (0.5 * 15 + 1) / 16, 0.1);
  EXPECT_EQ(cell(tables[1], 0, "clock first").value, 1980);
  EXPECT_EQ(cell(tables[1], 0, "clock last").value, 1700);
  EXPECT_EQ(cell(tables[1], 0, "held down by").value, "power cap 46.9 %, heat (hardware) 6.3 %");
  EXPECT_TRUE(tables[2].rows.empty());
}

// All ranks are always at the power cap, and one reading in a thousand also reports heat.
TEST(Sustained, AMomentOfHeatIsNotTheWholeIntervals) {
  Record record = sustained_record(6);
  std::vector<double> bits, shares, faulty;
  for (int64_t rank = 0; rank < kRanks; ++rank)
    for (int64_t k = 0; k < kIntervals; ++k) {
      bits.push_back(k % 10 == 0 ? 4 + 32 : 4);
      shares.push_back(1);
      faulty.push_back(k % 10 == 0 ? 0.001 : 0);
    }
  add_series(record, "interval_throttle", kRanks, bits);
  add_series(record, "interval_throttled", kRanks, shares);
  add_series(record, "interval_faulty", kRanks, faulty);
  EXPECT_THAT(findings_in(record), ::testing::IsEmpty());
}

TEST(Sustained, ThePlotsShowEveryIntervalAndTheBandOfTheRanks) {
  const std::vector<StudyData> studies = {study_with(throttled_record())};
  const Plots plots = sustained_plots(merge_repeats(studies));
  ASSERT_EQ(plots.size(), 2);  // step time and clock; there are no temperatures
  EXPECT_EQ(plots[0].key, "interval_time");
  ASSERT_EQ(plots[0].curves.size(), 1);
  const auto& points = plots[0].curves[0].points;
  ASSERT_EQ(points.size(), kIntervals);
  EXPECT_DOUBLE_EQ(points.back().over, kDuration / 60);
  EXPECT_NEAR(points.front().value, 100, 5);
  EXPECT_LT(points.front().low, points.front().high);
}

// Series of a damaged or foreign study are ignored if they do not fit.
TEST(Sustained, SeriesThatDoNotFitAreLeftOut) {
  Record broken = sustained_record(7);
  broken.samples[1].columns = 3;  // the series interval_time
  broken.samples[1].values.resize(3 * kRanks);
  EXPECT_TRUE(findings_in(broken).empty());
  broken = sustained_record(7);
  broken.samples[0].values[10] = Measures::kNone;
  EXPECT_TRUE(findings_in(broken).empty());
  Record few = training_record("ddp", 2, 4, 0.1);
  few.samples = {{"interval_end", 1, 1, {0.5}}, {"interval_time", 2, 1, {0.1, 0.1}}};
  const std::vector<StudyData> studies = {study_of({few})};
  const auto points = merge_repeats(studies);
  EXPECT_EQ(sustained_tables(points, {})[0].rows.size(), 1);
  EXPECT_TRUE(findings_of(points).empty());
}

// If a node overheats until it crashes, the intervals before the crash show why. No table treats this point
// as measured.
TEST(Sustained, RunsThatWereCutShortAreEvidenceAndNoResult) {
  Record dead = throttled_record();
  dead.outcome = Outcome::timed_out;
  dead.ended_job = true;
  const auto expect_told = [](const StudyData& study, const char* ended) {
    const std::vector<StudyData> studies = {study};
    EXPECT_TRUE(merge_repeats(studies).empty());
    const auto unfinished = unfinished_runs(studies);
    ASSERT_EQ(unfinished.size(), 1u);
    EXPECT_EQ(cell(sustained_tables({}, unfinished)[0], 0, "ended").value, ended);
    const auto findings = findings_of({}, unfinished);
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_THAT(findings[0].words, HasSubstr("heat (hardware) held the clock of rank 2"));
  };
  expect_told(study_with(dead), "timed_out");
  StudyData goes_on = study_with(dead);
  goes_on.under_way = std::move(goes_on.records.front());
  goes_on.under_way->outcome = Outcome::skipped;  // the outcome of a point under way is not known yet
  goes_on.records.clear();
  expect_told(goes_on, "not yet");
  EXPECT_TRUE(unfinished_runs({study_with(throttled_record())}).empty());
}

TEST(Sustained, DurationsInWords) {
  EXPECT_EQ(duration_text(45), "45 s");
  EXPECT_EQ(duration_text(600), "10 min");
  EXPECT_EQ(duration_text(4200), "1 h 10 min");
  EXPECT_EQ(duration_text(7200.3), "2 h");
}

}  // namespace
}  // namespace shardmark
