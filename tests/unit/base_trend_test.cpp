// Tests the detection of trends and changes, and that the rate of false alarms holds if neighbouring values
// are correlated.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "base/trend.h"

namespace shardmark {
namespace {

constexpr size_t kValues = 100;

// Returns AR(1) noise with a standard deviation of 1.
std::vector<double> noise(uint32_t seed, double correlation = 0) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values = {normal(random)};
  const double fresh = std::sqrt(1 - correlation * correlation);
  while (values.size() < kValues) values.push_back(correlation * values.back() + fresh * normal(random));
  return values;
}

std::vector<double> times() {
  std::vector<double> all(kValues);
  std::iota(all.begin(), all.end(), 0.0);
  return all;
}

TEST(Trend, IsTheMedianOfAllSlopes) {
  const Trend trend = trend_of({0, 1, 2, 4, 5}, {1, 3, 5, 9, 100});  // a slope of 2, and an outlier
  EXPECT_DOUBLE_EQ(trend.slope, 2);
  EXPECT_LE(trend.interval.low, 2);
  EXPECT_GE(trend.interval.high, 2);
  EXPECT_LT(trend.p, 0.2);
  EXPECT_DOUBLE_EQ(trend_of({0, 1, 2}, {1, 2, 3}).p, 1);  // too few values
}

// Kendall's S of the values 1 to 10 is 45, so z = 44 / sqrt(10 x 9 x 25 / 18) = 3.935.
TEST(Trend, HasTheProbabilityOfMannAndKendall) {
  std::vector<double> rising(10);
  std::iota(rising.begin(), rising.end(), 1.0);
  EXPECT_NEAR(trend_of(rising, rising).p, 8.3e-5, 0.1e-5);
}

TEST(Trend, IntervalsCoverTheTruthAndLevelsHold) {
  for (const double correlation : {0.0, 0.5}) {
    int covered = 0, found = 0;
    for (uint32_t seed = 0; seed < 1000; ++seed) {
      std::vector<double> values = noise(seed, correlation);
      const Trend flat = trend_of(times(), values);
      found += flat.p <= 0.01;
      covered += flat.interval.low <= 0 && flat.interval.high >= 0;
    }
    EXPECT_GE(covered, 930) << correlation;
    EXPECT_LE(found, correlation == 0 ? 15 : 30) << correlation;
  }
}

TEST(Trend, OfTwoStandardDeviationsInAllIsSeen) {
  int found = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    std::vector<double> values = noise(seed);
    for (size_t i = 0; i < kValues; ++i) values[i] += 2 * static_cast<double>(i) / kValues;
    found += trend_of(times(), values).p <= 0.001;
  }
  EXPECT_GE(found, 80);
}

TEST(ChangePoint, IsFoundWhereItIs) {
  for (const size_t at : {8, 60, 90}) {
    std::vector<double> values = noise(1);
    for (size_t i = at; i < kValues; ++i) values[i] -= 8;
    const auto change = change_point(values, 6);
    ASSERT_TRUE(change);
    EXPECT_EQ(change->first, at);
    EXPECT_NEAR(change->shift, -8, 1);
    EXPECT_LT(change->p, 1e-6);
  }
  EXPECT_FALSE(change_point({1, 2, 3, 4, 5}, 3));
  EXPECT_EQ(change_point({1, 1, 1, 1, 1, 1}, 3)->p, 1);
}

TEST(ChangePoint, LevelsHold) {
  for (const double correlation : {0.0, 0.5}) {
    int found = 0;
    for (uint32_t seed = 0; seed < 300; ++seed) found += change_point(noise(seed, correlation), 6)->p <= 0.01;
    EXPECT_LE(found, 9) << correlation;
  }
}

TEST(DependenceFactor, IsThatOfTheProcessWhateverItsTrend) {
  for (const double correlation : {0.0, 0.5, 0.8}) {
    double sum = 0;
    for (uint32_t seed = 0; seed < 200; ++seed) {
      std::vector<double> values = noise(seed, correlation);
      for (size_t i = 50; i < kValues; ++i) values[i] += 10;
      sum += std::log(dependence_factor(values)) / 200;
    }
    const double truth = (1 + correlation) / (1 - correlation);
    EXPECT_GT(std::exp(sum), 0.75 * truth) << correlation;
    EXPECT_LT(std::exp(sum), 1.5 * truth) << correlation;
  }
  EXPECT_EQ(dependence_factor({1, 1, 1, 1, 1}), 1);
}

}  // namespace
}  // namespace shardmark
