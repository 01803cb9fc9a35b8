// Tests statistics against exact values, and the coverage of the confidence intervals by simulation.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <random>

#include "base/error.h"
#include "base/stats.h"

namespace shardmark {
namespace {

TEST(Stats, QuantilesInterpolate) {
  const std::vector<double> values = {4, 1, 3, 2};
  EXPECT_DOUBLE_EQ(median(values), 2.5);
  EXPECT_DOUBLE_EQ(quantile(values, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(values, 1), 4);
  EXPECT_DOUBLE_EQ(quantile(values, 0.1), 1.3);  // quantile of type 7: 1 + 0.1 * 3
  EXPECT_DOUBLE_EQ(quantile({5}, 0.9), 5);
  EXPECT_DOUBLE_EQ(median({3, 1, 2}), 2);
}

TEST(Stats, MeanAndVariation) {
  EXPECT_DOUBLE_EQ(mean({1, 2, 6}), 3);
  EXPECT_DOUBLE_EQ(coefficient_of_variation({1, 3}), std::sqrt(2.0) / 2);
  EXPECT_DOUBLE_EQ(coefficient_of_variation({7}), 0);
  EXPECT_DOUBLE_EQ(coefficient_of_variation({7, 7, 7}), 0);
}

TEST(Stats, NothingHasNoStatistics) {
  EXPECT_THROW(median({}), ContractError);
  EXPECT_THROW(quantile({}, 0.5), ContractError);
  EXPECT_THROW(mean({}), ContractError);
  EXPECT_THROW(median_interval({}), ContractError);
}

// The ranks of the 95 % interval, from table A.1 of Le Boudec's book: n -> (j, k).
TEST(Stats, MedianIntervalHasThePublishedRanks) {
  const struct {
    size_t n, low, high;
  } rows[] = {{6, 1, 6},   {7, 1, 7},   {8, 1, 8},    {9, 2, 8},   {10, 2, 9},
              {15, 4, 12}, {20, 6, 15}, {30, 10, 21}, {70, 27, 44}};
  for (const auto& row : rows) {
    std::vector<double> values(row.n);
    std::iota(values.rbegin(), values.rend(), 1.0);
    const Interval interval = median_interval(values);
    EXPECT_EQ(interval.low, static_cast<double>(row.low)) << row.n;
    EXPECT_EQ(interval.high, static_cast<double>(row.high)) << row.n;
  }
}

// The range of 5 values covers the median with a probability of only 1 - 2 / 2^5 = 93.75 %.
TEST(Stats, FewValuesHaveNoInterval) {
  std::vector<double> values;
  while (values.size() < kLeastForInterval) {
    if (!values.empty()) {
      EXPECT_TRUE(std::isnan(median_interval(values).low)) << values.size();
      EXPECT_TRUE(std::isnan(median_interval(values).high)) << values.size();
    }
    values.push_back(static_cast<double>(values.size()));
  }
  EXPECT_EQ(median_interval(values).low, 0);
  EXPECT_EQ(median_interval(values).high, 5);
}

TEST(Stats, MedianIntervalSurvivesManyValues) {
  std::vector<double> values(100000);
  std::iota(values.begin(), values.end(), 0.0);
  const Interval interval = median_interval(values);  // the half-width is 1.96 sqrt(n) / 2
  EXPECT_NEAR(interval.low, 50000 - 310, 3);
  EXPECT_NEAR(interval.high, 50000 + 310, 3);
}

// The interval contains the true median in at least 95 % of the cases, whatever the distribution. The
// tolerance is 4 standard errors.
TEST(Stats, MedianIntervalCoversTheMedian) {
  std::mt19937 random(1);
  const struct {
    double median;
    std::function<double()> draw;
  } distributions[] = {
      {0, [&] { return std::normal_distribution<>(0, 1)(random); }},
      {1, [&] { return std::lognormal_distribution<>(0, 2)(random); }},
      {std::log(2.0), [&] { return std::exponential_distribution<>(1)(random); }},
  };
  constexpr int kTrials = 4000;
  for (const auto& distribution : distributions) {
    for (const size_t n : {6, 11, 40, 200}) {
      int num_covered = 0;
      for (int trial = 0; trial < kTrials; ++trial) {
        std::vector<double> values(n);
        for (double& value : values) value = distribution.draw();
        const Interval interval = median_interval(values);
        num_covered += interval.low <= distribution.median && distribution.median <= interval.high;
      }
      const double coverage = static_cast<double>(num_covered) / kTrials;
      EXPECT_GE(coverage, 0.95 - 4 * std::sqrt(0.95 * 0.05 / kTrials)) << n;
      EXPECT_LE(coverage, n < 40 ? 1 : 0.98) << n << ": wider than it need be";
    }
  }
}

TEST(Stats, DriftIsARankCorrelationWithPosition) {
  EXPECT_DOUBLE_EQ(drift({1, 2, 4, 8, 100}), 1);
  EXPECT_DOUBLE_EQ(drift({5, 4, 3, 1}), -1);
  EXPECT_DOUBLE_EQ(drift({1, 3, 2}), 0.5);
  EXPECT_DOUBLE_EQ(drift({1, 2}), 0);
}

TEST(Stats, DriftOfEqualValuesIsNone) {
  EXPECT_DOUBLE_EQ(drift({2, 2, 2, 2}), 0);
  EXPECT_NEAR(drift({1, 1, 1, 2, 2, 2, 1, 1, 1}), 0, 1e-12);
}

}  // namespace
}  // namespace shardmark
