// Statistics of samples: order statistics, intervals of the median, spread. No distribution is assumed.
#pragma once

#include <cstddef>
#include <vector>

namespace shardmark {

struct Interval {
  double low;
  double high;
};

// All functions take a copy and sort it; they throw ContractError on an empty input.
double median(std::vector<double> values);
// Linear interpolation between order statistics (Hyndman and Fan's type 7); q in [0, 1].
double quantile(std::vector<double> values, double q);
double mean(const std::vector<double>& values);
// Sample standard deviation / mean; 0 for fewer than 2 values.
double coefficient_of_variation(const std::vector<double>& values);

// 95 % interval of the median from order statistics, distribution-free: exact binomial ranks. Fewer than
// kLeastForInterval values have none, because even their whole range covers the median too rarely (5 values:
// with 93.75 %): then both ends are NaN. Source: Le Boudec, Performance Evaluation, section 2.2.
inline constexpr size_t kLeastForInterval = 6;
Interval median_interval(std::vector<double> values);

// Spearman rank correlation of values with their position: +-1 is a monotone drift. 0 for fewer than 3
// values.
double drift(const std::vector<double>& values);

// A difference of sums of about this size that cannot be below 0. Less than a billionth of them is rounding,
// and 0 is returned.
double without_rounding(double difference, double size);

}  // namespace shardmark
