// Does a series of values over time rise or fall, or does it jump at some moment? The tests use ranks and
// medians because outliers are common in measured times. Neighbouring values may be correlated; that widens
// every interval.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/stats.h"

namespace shardmark {

struct Trend {
  double slope;       // median slope of all pairs (Theil, 1950; Sen, JASA 63, 1968)
  Interval interval;  // 95 % confidence interval of the slope
  // Two-sided p-value of "no trend" (Mann, Econometrica 13, 1945; Kendall 1975).
  double p;
};

// The trend of values at distinct times. Fewer than 4 values cannot show one: then the interval spans the
// slopes of all pairs, and p = 1.
Trend trend_of(const std::vector<double>& times, const std::vector<double>& values);

struct ChangePoint {
  size_t first;  // index of the first value after the change
  double shift;  // median after - median before
  // Upper bound of the two-sided p-value of "no change anywhere" (Bonferroni over the positions that were
  // tried).
  double p;
};

// Finds the position that divides the values best, that is, with the smallest sum of distances from the
// medians of both sides, with at least `least_on_a_side` values on each side. The difference of the medians
// is then tested against its standard error: a median of n values has 1.25 standard deviations / sqrt(n), and
// the standard deviation is estimated from the median distance to the sides' medians. Returns nothing if
// there are too few values.
std::optional<ChangePoint> change_point(const std::vector<double>& values, size_t least_on_a_side);

// The factor by which the variance of sums and medians grows because neighbouring values resemble each other,
// under an AR(1) model: (1 + r) / (1 - r). The correlation r is estimated by comparing differences of values
// 2 apart with those 1 apart, so that neither a trend nor a step is taken for correlation. r is at most 0.9.
double dependence_factor(const std::vector<double>& values);

}  // namespace shardmark
