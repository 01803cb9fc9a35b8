// Efficiency, Karp-Flatt and Amdahl on numbers worked out by hand, and on data whose serial fraction is
// known.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "analysis/amdahl.h"
#include "analysis/scaling.h"
#include "analysis_fixture.h"

namespace shardmark {
namespace {

TEST(Efficiency, ByHand) {
  EXPECT_DOUBLE_EQ(weak_efficiency(0.100, 0.125), 0.8);
  EXPECT_DOUBLE_EQ(strong_efficiency(1, 8.0, 4, 2.5), 0.8);   // 1 x 8 s / (4 x 2.5 s)
  EXPECT_DOUBLE_EQ(strong_efficiency(2, 5.0, 8, 1.25), 1.0);  // base of two ranks
}

TEST(KarpFlatt, ByHand) {
  EXPECT_DOUBLE_EQ(karp_flatt(4, 8), (0.25 - 0.125) / 0.875);  // 1/7
  EXPECT_DOUBLE_EQ(karp_flatt(8, 8), 0);
  EXPECT_DOUBLE_EQ(karp_flatt(1, 8), 1);
  EXPECT_LT(karp_flatt(9, 8), 0);  // faster than linear
  EXPECT_TRUE(std::isnan(karp_flatt(1, 1)));
}

TEST(Amdahl, ByHand) {
  EXPECT_DOUBLE_EQ(amdahl_speedup(0.1, 10), 1 / 0.19);
  EXPECT_DOUBLE_EQ(amdahl_speedup(0, 64), 64);
  EXPECT_DOUBLE_EQ(amdahl_speedup(1, 64), 1);
}

std::vector<StepTime> amdahl_times(double serial, const std::vector<int64_t>& ranks) {
  std::vector<StepTime> times;
  times.reserve(ranks.size());
  for (int64_t n : ranks) times.push_back({n, 2 / amdahl_speedup(serial, static_cast<double>(n))});
  return times;
}

TEST(Amdahl, FitRecoversTheSerialFraction) {
  for (double serial : {0.0, 1e-4, 0.05, 0.5, 1.0}) {
    const SerialFraction fit = serial_fraction(amdahl_times(serial, {1, 2, 4, 8, 64})).value();
    EXPECT_TRUE(fit.fitted) << serial;
    EXPECT_NEAR(fit.value, serial, 1e-9);
    EXPECT_NEAR(fit.high - fit.low, 0, 1e-6) << serial;  // exact data leave no residuals
  }
}

// The interval must hold the true value about as often as it claims: 95 %, of 4,000 noisy series.
TEST(Amdahl, IntervalCoversTheTruth) {
  std::mt19937 random(7);
  std::normal_distribution<double> noise(0, 0.02);
  int covered = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    auto times = amdahl_times(0.08, {1, 2, 4, 8, 16});
    for (StepTime& time : times) {
      time.step_s *= 1 + noise(random);
      time.low_s = time.step_s * (1 - 1.96 * 0.02);
      time.high_s = time.step_s * (1 + 1.96 * 0.02);
    }
    const SerialFraction fit = serial_fraction(times).value();
    EXPECT_TRUE(fit.fitted);
    covered += fit.low <= 0.08 && 0.08 <= fit.high ? 1 : 0;
  }
  EXPECT_NEAR(covered / 4000.0, 0.95, 0.02);
}

TEST(Amdahl, TwoOrThreeRankCountsGiveAnEstimateWithoutInterval) {
  for (const auto& ranks : {std::vector<int64_t>{1, 4}, std::vector<int64_t>{1, 2, 4}}) {
    const SerialFraction estimate = serial_fraction(amdahl_times(0.2, ranks)).value();
    EXPECT_FALSE(estimate.fitted);
    EXPECT_NEAR(estimate.value, 0.2, 1e-12);
    EXPECT_TRUE(std::isnan(estimate.low));
  }
  EXPECT_FALSE(serial_fraction(amdahl_times(0.2, {1})));
  EXPECT_FALSE(serial_fraction(amdahl_times(0.2, {2, 4, 8, 16})));  // no base of one rank
}

TEST(ScalingTables, KeepWeakAndStrongApart) {
  const StudyData study =
      study_of({training_record("ddp", 1, 8, 0.8), training_record("ddp", 2, 8, 1.0),
                training_record("ddp", 2, 4, 0.5), training_record("ddp", 4, 2, 0.3125),
                training_record("single", 1, 8, 0.7), training_record("single", 2, 8, 0.7)});
  const MergedPoints points = merge_repeats({study});
  const Table weak = weak_scaling_table(points);
  ASSERT_EQ(weak.rows.size(), 2u);  // batch 8 on 1 and 2 ranks; not single
  EXPECT_EQ(cell(weak, 1, "efficiency median").text, "80.0");
  EXPECT_EQ(cell(weak, 1, "base n0").text, "1");
  const Table strong = strong_scaling_table(points);
  ASSERT_EQ(strong.rows.size(), 3u);                             // global batch 8 on 1, 2 and 4 ranks
  EXPECT_EQ(cell(strong, 1, "efficiency median").text, "80.0");  // 0.8 / (2 x 0.5)
  EXPECT_EQ(cell(strong, 2, "efficiency median").text, "64.0");  // 0.8 / (4 x 0.3125)
  EXPECT_NEAR(cell(strong, 2, "Karp-Flatt").value.get<double>(), 0.1875, 1e-12);  // (1/2.56 - 1/4) / (3/4)
  EXPECT_EQ(cell(amdahl_table(points), 2, "serial fraction s from").text, "estimate");
}

TEST(ScalingTables, NameABaseAboveOneRank) {
  const MergedPoints points =
      merge_repeats({study_of({training_record("ddp", 2, 4, 0.5), training_record("ddp", 4, 2, 0.3125)})});
  const Table strong = strong_scaling_table(points);
  EXPECT_EQ(cell(strong, 1, "base n0").text, "2");
  EXPECT_EQ(cell(strong, 1, "efficiency median").text, "80.0");
  EXPECT_EQ(cell(strong, 1, "speed-up").text, "-");
  EXPECT_TRUE(amdahl_table(points).rows.empty());
}

TEST(ScalingTables, SlowdownHasNoLimit) {
  const Table table = amdahl_table(
      merge_repeats({study_of({training_record("ddp", 1, 8, 0.1), training_record("ddp", 2, 4, 0.4)})}));
  EXPECT_EQ(cell(table, 1, "serial fraction s value").text, "700.00");  // (4 - 1/2) / (1/2)
  EXPECT_EQ(cell(table, 1, "speed-up limit").text, "-");
  EXPECT_NE(to_text(table).find("more ranks were slower than one"), std::string::npos);
}

TEST(ScalingTables, OversubscribedPointsAreMarkedAndNotFitted) {
  std::vector<Record> records;
  for (int64_t n : {1, 2, 4, 8, 16}) {
    records.push_back(training_record("ddp", n, 16 / n, 1 / amdahl_speedup(0.1, static_cast<double>(n))));
    records.back().measures.oversubscribed = n == 16;
  }
  records.back().measures.step_s = 5;  // nonsense, as oversubscribed times are
  const Table table = amdahl_table(merge_repeats({study_of(records)}));
  ASSERT_EQ(table.rows.size(), 5u);
  EXPECT_EQ(cell(table, 4, "marks").text, "oversubscribed");
  EXPECT_EQ(cell(table, 0, "serial fraction s from").text, "fit");
  EXPECT_NEAR(cell(table, 0, "serial fraction s value").value.get<double>(), 10, 1e-6);
}

}  // namespace
}  // namespace shardmark
