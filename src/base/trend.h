// Does a series of values over time go up or down, or change at some moment? By ranks and medians, as
// outliers are common; correlated neighbours widen every interval.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/stats.h"

namespace shardmark {

struct Trend {
  double slope;       // median of the slopes of all pairs (Theil, 1950; Sen, JASA 63, 1968)
  Interval interval;  // 95 %, of the slope
  double p;           // of "no trend", two-sided (Mann, Econometrica 13, 1945; Kendall 1975)
};

// Of values at distinct times, in order. Fewer than 4 values tell nothing: the slope of the first to the
// last within all pairs', p = 1.
Trend trend_of(const std::vector<double>& times, const std::vector<double>& values);

struct ChangePoint {
  size_t first;  // of the values after the change
  double shift;  // median after - median before
  double p;      // of "no change" at any place, two-sided, at most (Bonferroni over the places)
};

// The place that divides the values best (smallest sum of distances from the medians of both sides), with at
// least this many values on each side. The difference of the medians is tested against what medians of such
// numbers of values vary by: 1.25 standard deviations / sqrt(n), those from the median distance from the
// sides' medians.
std::optional<ChangePoint> change_point(const std::vector<double>& values, size_t least_on_a_side);

// By how much variances of sums and medians grow because neighbours resemble each other, as an AR(1) process
// does: (1 + r) / (1 - r). r comes from differences of values 2 apart against 1 apart, in which neither a
// trend nor a step shows; at most 0.9.
double dependence_factor(const std::vector<double>& values);

}  // namespace shardmark
