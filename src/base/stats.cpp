// Order statistics and the binomial ranks of their confidence intervals.
#include "base/stats.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"

namespace shardmark {

double quantile(std::vector<double> values, double q) {
  ENSURE(!values.empty(), "quantile of nothing");
  const double position = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(position);
  // nth_element puts one order statistic into its place and all larger values behind it. So the next order
  // statistic is the least of those behind, and the values need not be sorted.
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(below), values.end());
  const double low = values[below];
  if (below + 1 == values.size()) return low;
  const double high =
      *std::min_element(values.begin() + static_cast<std::ptrdiff_t>(below) + 1, values.end());
  return low + (position - static_cast<double>(below)) * (high - low);
}

double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

double mean(const std::vector<double>& values) {
  ENSURE(!values.empty(), "mean of nothing");
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double coefficient_of_variation(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const double center = mean(values);
  double squares = 0;
  for (double value : values) squares += (value - center) * (value - center);
  return std::sqrt(squares / static_cast<double>(values.size() - 1)) / center;
}

Interval median_interval(std::vector<double> values) {
  ENSURE(!values.empty(), "interval of nothing");
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  // Find the largest k with P(Binomial(n, 1/2) < k) <= 2.5 %. Then [x_k, x_(n+1-k)] covers the median with at
  // least 95 %. Probabilities are built from logarithms because 2^-n underflows for many values.
  double log_probability = -static_cast<double>(n) * std::log(2.0);  // of k successes, here 0
  double cumulative = 0;
  size_t k = 0;
  while (k < n) {
    cumulative += std::exp(log_probability);
    if (cumulative > 0.025) break;
    log_probability += std::log(static_cast<double>(n - k) / static_cast<double>(k + 1));
    ++k;
  }
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (k == 0) return {kNone, kNone};
  return {values[k - 1], values[n - k]};
}

double drift(const std::vector<double>& values) {
  const size_t n = values.size();
  if (n < 3) return 0;
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  // Pearson's correlation of position and rank. Equal values share their mean rank; without that, a constant
  // series would drift.
  const double center = static_cast<double>(n - 1) / 2;
  double products = 0, rank_squares = 0, position_squares = 0;
  for (size_t first = 0, last; first < n; first = last + 1) {
    for (last = first; last + 1 < n && values[order[last + 1]] == values[order[first]];) ++last;
    const double rank = static_cast<double>(first + last) / 2 - center;
    for (size_t i = first; i <= last; ++i) {
      const double position = static_cast<double>(order[i]) - center;
      products += position * rank;
      position_squares += position * position;
      rank_squares += rank * rank;
    }
  }
  return rank_squares == 0 ? 0 : products / std::sqrt(rank_squares * position_squares);
}

double without_rounding(double difference, double size) {
  constexpr double kRounding = 1e-9;
  return difference <= kRounding * size ? 0 : difference;  // a NaN stays NaN
}

}  // namespace shardmark
