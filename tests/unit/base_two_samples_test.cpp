// Tests the two-sample tests against published tables and by simulation.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/two_samples.h"

namespace shardmark {
namespace {

TEST(MannWhitney, CountsArrangements) {
  EXPECT_NEAR(mann_whitney_p({1, 2, 3}, {4, 5, 6}), 2 / 20.0, 1e-12);
  EXPECT_NEAR(mann_whitney_p({1, 2, 3, 4}, {5, 6, 7, 8}), 2 / 70.0, 1e-12);
  EXPECT_NEAR(mann_whitney_p({1, 2, 4}, {3, 5, 6}), 4 / 20.0, 1e-12);
  EXPECT_NEAR(mann_whitney_p({6, 5, 3}, {1, 2, 4}), 4 / 20.0, 1e-12);
  EXPECT_NEAR(mann_whitney_p({1}, {2}), 1, 1e-12);
  EXPECT_NEAR(mann_whitney_p({1, 1, 1}, {1, 1, 1}), 1, 1e-12);
  // With ties, there are 6 ways to choose two of the ranks 1.5, 1.5, 3.5, 3.5. One has a sum of 3 and one a
  // sum of 7.
  EXPECT_NEAR(mann_whitney_p({1, 1}, {2, 2}), 2 / 6.0, 1e-12);
}

// Critical values of U for a two-sided test at 5 %, from Mann and Whitney's table (Siegel, table K). Our
// function returns the next larger value.
TEST(MannWhitney, CriticalPairsAgreeWithTheTable) {
  EXPECT_EQ(mann_whitney_pairs(3, 3, 0.05), 0u);
  EXPECT_EQ(mann_whitney_pairs(4, 4, 0.05), 0u + 1);
  EXPECT_EQ(mann_whitney_pairs(5, 5, 0.05), 2u + 1);
  EXPECT_EQ(mann_whitney_pairs(3, 8, 0.05), 2u + 1);
  EXPECT_EQ(mann_whitney_pairs(10, 10, 0.05), 23u + 1);
  EXPECT_EQ(mann_whitney_pairs(20, 20, 0.05), 127u + 1);
}

TEST(MannWhitney, TheIntervalOfTheShiftCovers) {
  EXPECT_FALSE(shift_interval({1, 2, 3}, {1, 2, 3}));
  std::mt19937_64 random(5);
  std::lognormal_distribution<double> value(0, 1);  // the test assumes no distribution
  int covered = 0;
  constexpr int kTrials = 2000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> a(6), b(7);
    for (double& x : a) x = value(random);
    for (double& y : b) y = value(random) + 0.7;
    const auto interval = shift_interval(a, b);
    ASSERT_TRUE(interval);
    covered += interval->low <= 0.7 && 0.7 <= interval->high;
  }
  EXPECT_GE(covered, 0.94 * kTrials);
  EXPECT_LE(covered, 0.985 * kTrials);  // exact levels are discrete; 6 against 7 values reach 96.5 %
}

// The values are from Abramowitz and Stegun, table 26.10.
TEST(Student, AgreesWithTheTable) {
  EXPECT_NEAR(student_t(0.05, 1), 12.706, 5e-4);
  EXPECT_NEAR(student_t(0.05, 2), 4.303, 5e-4);
  EXPECT_NEAR(student_t(0.05, 3), 3.182, 5e-4);
  EXPECT_NEAR(student_t(0.01, 8), 3.355, 5e-4);
  EXPECT_NEAR(student_t(0.002, 15), 3.733, 5e-4);
  EXPECT_NEAR(student_t(0.05, 120), 1.980, 5e-4);
  EXPECT_NEAR(student_p(0, 4), 1, 1e-12);
  EXPECT_EQ(student_p(INFINITY, 4), 0);
}

TEST(Holm, CorrectsStepByStep) {
  const std::vector<double> corrected = holm({0.01, 0.04, 0.03, 0.005});
  EXPECT_NEAR(corrected[3], 4 * 0.005, 1e-12);
  EXPECT_NEAR(corrected[0], 3 * 0.01, 1e-12);
  EXPECT_NEAR(corrected[2], 2 * 0.03, 1e-12);
  EXPECT_NEAR(corrected[1], 0.06, 1e-12);  // not below the corrected p of a smaller p
  EXPECT_TRUE(holm({}).empty());
}

}  // namespace
}  // namespace shardmark
