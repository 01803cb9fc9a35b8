// Statistics of samples: order statistics, confidence intervals of the median, spread. No distribution is
// assumed.
#pragma once

#include <cstddef>
#include <vector>

namespace shardmark {

struct Interval {
  double low;
  double high;
};

// All functions below throw ContractError on an empty input, except where another value is stated.
double median(std::vector<double> values);
// Linear interpolation between order statistics (Hyndman and Fan's type 7); q in [0, 1].
double quantile(std::vector<double> values, double q);
double mean(const std::vector<double>& values);
// Sample standard deviation divided by the mean; 0 for fewer than 2 values.
double coefficient_of_variation(const std::vector<double>& values);

// The 95 % confidence interval of the median from order statistics, with exact binomial ranks, so that it
// holds for any distribution. With fewer than kLeastForInterval values even their whole range covers the
// median too rarely (5 values: with 93.75 %); then both ends are NaN. Source: Le Boudec, Performance
// Evaluation, section 2.2.
inline constexpr size_t kLeastForInterval = 6;
Interval median_interval(std::vector<double> values);

// Spearman's rank correlation of the values with their position: +1 or -1 is a monotone drift. 0 for fewer
// than 3 values.
double drift(const std::vector<double>& values);

// For a difference of two sums that cannot be negative except by rounding. `size` is the order of magnitude
// of the sums. Differences up to a billionth of `size` are taken as rounding and returned as 0.
double without_rounding(double difference, double size);

}  // namespace shardmark
