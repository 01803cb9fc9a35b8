// The power of comparisons with given numbers of launches.
#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "analysis/stats/compare.h"
#include "base/two_samples.h"

namespace shardmark {
namespace {

constexpr int kTrials = 4000;  // the 80 % point of a shift is then known to about 1 %

// A shift lifts x of `after` above y of `before` if it is larger than y - x. Returns the `place`-th largest
// of these differences over all pairs. With a larger shift, fewer than `place` pairs are still in the wrong
// order, which is what the rank test asks for (mann_whitney_pairs).
double order_needed(const std::vector<double>& before, const std::vector<double>& after, size_t place) {
  std::vector<double> needed;
  needed.reserve(before.size() * after.size());
  for (const double x : before)
    for (const double y : after) needed.push_back(x - y);
  const auto at = needed.begin() + static_cast<std::ptrdiff_t>(place) - 1;
  std::nth_element(needed.begin(), at, needed.end(), std::greater<>());
  return *at;
}

}  // namespace

// Draws launches whose logarithms are normal with standard deviation 1, without a difference between the
// sides. A real spread stretches such a trial, and a slow-down shifts it. So each trial is drawn once, and
// stores what slowdown() needs to find, for any spread, the smallest slow-down that it would call SLOWER.
Power::Power(size_t num_old, size_t num_new, double level) : basis_(basis_for(num_old, num_new, level)) {
  if (basis_ == Basis::none) return;
  const double of_mean = std::sqrt(1 / static_cast<double>(num_old) + 1 / static_cast<double>(num_new));
  t_test_ = student_t(level, num_old + num_new - 2) * of_mean;
  t_interval_ = student_t(kIntervalLevel, num_old + num_new - 2) * of_mean;
  const size_t test_pairs = mann_whitney_pairs(num_old, num_new, level);
  const size_t interval_pairs = mann_whitney_pairs(num_old, num_new, kIntervalLevel);
  ranks_have_interval_ = interval_pairs > 0;
  std::mt19937_64 random(1);
  std::normal_distribution<double> launch;
  std::vector<double> before(num_old), after(num_new);
  trials_.reserve(kTrials);
  for (int trial = 0; trial < kTrials; ++trial) {
    for (auto* side : {&before, &after})
      for (double& value : *side) value = launch(random);
    trials_.push_back(
        {mean(after) - mean(before), pooled_deviation(before, after),
         test_pairs > 0 ? order_needed(before, after, test_pairs) : 0,
         // The interval's upper end is as far down among the differences, which are the negated needs.
         ranks_have_interval_ ? -order_needed(before, after, num_old * num_new + 1 - interval_pairs) : 0});
  }
}

// Each trial has a threshold: from which slow-down on would these launches be called SLOWER? The slow-down
// must be significant by the test, and the upper end of its interval must lie beyond the margin. The 80 %
// quantile of the thresholds is the slow-down that 80 % of the trials show.
double Power::slowdown(double spread, double margin) const {
  std::vector<double> needed;
  needed.reserve(trials_.size());
  for (const Trial& trial : trials_) {
    // As in a comparison, launches never count as closer to each other than kLeastSpread.
    const double deviation = std::max(trial.deviation * spread, kLeastSpread);
    const double by_test =
        basis_ == Basis::ranks ? trial.ranks * spread : t_test_ * deviation - trial.shift * spread;
    const double high =
        ranks_have_interval_ ? trial.high * spread : trial.shift * spread + t_interval_ * deviation;
    needed.push_back(std::max(by_test, std::log1p(margin) - high));
  }
  return needed.empty() ? Measures::kNone : std::expm1(quantile(std::move(needed), kPower));
}

}  // namespace shardmark
