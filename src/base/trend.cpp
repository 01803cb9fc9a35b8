// Theil-Sen slopes with the Mann-Kendall test, and a change point of medians. Both variances are widened by
// dependence_factor().
#include "base/trend.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace shardmark {
namespace {

constexpr size_t kLeastValues = 4;
constexpr double kMostCorrelation = 0.9;
constexpr double k95 = 1.96;
// For the normal distribution: standard deviation / median absolute deviation; standard error of a median x
// sqrt(n) / standard deviation.
constexpr double kDeviations = 1.4826, kMedian = 1.2533;

int sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

// Mean square of the differences between values `apart` positions apart. The median difference is subtracted
// because it belongs to the trend. The largest tenth is left out because it contains steps and outliers.
double usual_difference(const std::vector<double>& values, size_t apart) {
  std::vector<double> squares;
  for (size_t i = apart; i < values.size(); ++i) squares.push_back(values[i] - values[i - apart]);
  const double middle = median(squares);
  for (double& difference : squares) difference = (difference - middle) * (difference - middle);
  std::sort(squares.begin(), squares.end());
  squares.resize(squares.size() - squares.size() / 10);
  return mean(squares);
}

}  // namespace

double dependence_factor(const std::vector<double>& values) {
  if (values.size() < kLeastValues) return 1;
  // In an AR(1) process the variance of x(t+k) - x(t) is proportional to 1 - r^k, so the ratio of k = 2 to k
  // = 1 is 1 + r.
  const double one = usual_difference(values, 1), two = usual_difference(values, 2);
  if (two <= one) return 1;
  const double r = one > 0 ? std::min(two / one - 1, kMostCorrelation) : kMostCorrelation;
  return (1 + r) / (1 - r);
}

// The slope is the median of the slopes of all pairs. Kendall's S is the number of pairs that rise minus the
// number of pairs that fall. Without a trend it is nearly normal with the variance n (n - 1) (2n + 5) / 18,
// which dependence_factor() widens. The interval of the slope follows from the same deviation: its ends are
// the slopes whose ranks lie half of 1.96 deviations below and above the middle of all pairs (Sen 1968).
Trend trend_of(const std::vector<double>& times, const std::vector<double>& values) {
  ENSURE(times.size() == values.size() && values.size() >= 2, "a trend of fewer than two values");
  std::vector<double> slopes;
  int64_t rises = 0;  // Kendall's S
  for (size_t i = 0; i < values.size(); ++i)
    for (size_t j = i + 1; j < values.size(); ++j) {
      slopes.push_back((values[j] - values[i]) / (times[j] - times[i]));
      rises += sign(values[j] - values[i]);
    }
  std::sort(slopes.begin(), slopes.end());
  Trend trend{median(slopes), {slopes.front(), slopes.back()}, 1};
  if (values.size() < kLeastValues) return trend;
  const auto n = static_cast<double>(values.size());
  const double deviation = std::sqrt(n * (n - 1) * (2 * n + 5) / 18 * dependence_factor(values));
  const double away = std::max(std::abs(static_cast<double>(rises)) - 1, 0.0);  // continuity correction
  trend.p = std::erfc(away / deviation / std::sqrt(2));
  const auto pairs = static_cast<double>(slopes.size());
  const auto at = [&](double rank) {
    return slopes[static_cast<size_t>(std::clamp(std::round(rank), 1.0, pairs)) - 1];
  };
  trend.interval = {at((pairs - k95 * deviation) / 2), at((pairs + k95 * deviation) / 2 + 1)};
  return trend;
}

std::optional<ChangePoint> change_point(const std::vector<double>& values, size_t least_on_a_side) {
  const size_t least = std::max<size_t>(least_on_a_side, 2);
  if (values.size() < 2 * least) return {};
  ChangePoint change{};
  double spread = INFINITY, deviation = 0;
  for (size_t first = least; first + least <= values.size(); ++first) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(first);
    const double before = median({values.begin(), middle}), after = median({middle, values.end()});
    std::vector<double> distances;
    for (size_t i = 0; i < values.size(); ++i)
      distances.push_back(std::abs(values[i] - (i < first ? before : after)));
    if (const double sum = mean(distances); sum < spread) {
      spread = sum;
      deviation = kDeviations * median(std::move(distances));
      change = {first, after - before, 1};
    }
  }
  const auto n1 = static_cast<double>(change.first), n2 = static_cast<double>(values.size()) - n1;
  const double error = kMedian * deviation * std::sqrt(dependence_factor(values) * (1 / n1 + 1 / n2));
  const auto places = static_cast<double>(values.size() - 2 * least + 1);
  if (change.shift != 0)
    change.p = std::min(1.0, places * std::erfc(std::abs(change.shift) / error / std::sqrt(2)));
  return change;
}

}  // namespace shardmark
