// The power of comparisons with given numbers of launches.
#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "analysis/compare/compare.h"
#include "base/two_samples.h"

namespace shardmark {
namespace {

constexpr int kTrials = 4000;  // the 80 % point of a shift is then known to about 1 %

// Of one trial: the shift of `after` from which on the rank test sees that it lies above `before`: all but
// fewer than `pairs` of the pairs must.
double shift_for_ranks(const std::vector<double>& before, const std::vector<double>& after, size_t pairs) {
  std::vector<double> needed;
  for (const double x : before)
    for (const double y : after) needed.push_back(x - y);
  const auto place = needed.begin() + static_cast<std::ptrdiff_t>(pairs) - 1;
  std::nth_element(needed.begin(), place, needed.end(), std::greater<>());
  return *place;
}

double shift_for_spread(const std::vector<double>& before, const std::vector<double>& after, double t) {
  const double deviation =
      pooled_deviation(before, after) *
      std::sqrt(1 / static_cast<double>(before.size()) + 1 / static_cast<double>(after.size()));
  return t * deviation - (mean(after) - mean(before));
}

}  // namespace

double detectable_shift(size_t num_old, size_t num_new, double level) {
  const Basis basis = basis_for(num_old, num_new, level);
  if (basis == Basis::none) return Measures::kNone;
  const size_t pairs = mann_whitney_pairs(num_old, num_new, level);
  const double t = student_t(level, num_old + num_new - 2);
  std::mt19937_64 random(1);
  std::normal_distribution<double> launch;
  std::vector<double> before(num_old), after(num_new), shifts;
  shifts.reserve(kTrials);
  for (int trial = 0; trial < kTrials; ++trial) {
    for (auto* side : {&before, &after})
      for (double& value : *side) value = launch(random);
    shifts.push_back(basis == Basis::ranks ? shift_for_ranks(before, after, pairs)
                                           : shift_for_spread(before, after, t));
  }
  return quantile(std::move(shifts), kPower);
}

}  // namespace shardmark
