// Fits, and refuses to fit.
#include "analysis/stats/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "analysis/stats/counts.h"
#include "analysis/stats/curve.h"

namespace shardmark {
namespace {

using namespace scaling_curve;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A curve that is further from a count than this, and than thrice the half-width of the interval of a time
// there, does not describe it: thrice what launches of one point vary by on shared machines.
constexpr double kMostDeviation = 0.15;

// The level of the test of lack of fit, which is the share of valid laws that it rejects.
constexpr double kLackOfFitLevel = 0.01;

// s lies in [0, 1]; alpha, beta and delta have no upper end. Without a positive time at one unit nothing is
// bounded.
double parameter(ScalingLaw law, const Coefficients& c, size_t index) {
  const bool is_share = law != ScalingLaw::usl && index == kSerial;
  if (!(c[kAtOne] > 0)) return is_share ? 1 : kInfinity;
  const double value = std::max(c[index] / c[kAtOne], 0.0);
  return is_share ? std::min(value, 1.0) : value;
}

double largest_speed_up(const Coefficients& c) {
  return c[kAtOne] > 0 ? 1 / std::clamp((c[kSerial] + c[kBeyond]) / c[kAtOne], 0.0, 1.0) : 1;
}

// A quantity that follows from the coefficients: its value at the best curve that the law allows, with the
// percentiles of its values over the draws as the interval.
template <class Function>
Estimate estimate(const ScalingFit::Curve& curve, const std::vector<Coefficients>& draws, Function of) {
  std::vector<double> drawn;
  drawn.reserve(draws.size());
  for (const Coefficients& c : draws) drawn.push_back(of(c));
  return scaling_curve::estimate(of(constrained(curve, curve.best)), std::move(drawn));
}

std::vector<TimedCount> usable(const std::vector<TimedCount>& times) {
  std::vector<TimedCount> kept;
  for (const TimedCount& time : times)
    if (std::isfinite(time.step_s.value) && time.step_s.value > 0) kept.push_back(time);
  return kept;
}

// Whether it holds in more than kCertain of the draws.
template <class Condition>
bool is_certain(const std::vector<Coefficients>& draws, Condition condition) {
  constexpr double kCertain = 0.975;
  const auto count = std::count_if(draws.begin(), draws.end(), condition);
  return static_cast<double>(count) > kCertain * static_cast<double>(draws.size());
}

// The error is that of all times around the curve, while the scatter between launches explains the distances
// of the counts' means; else it is that of these means.
void fit_curve(ScalingFit& fit, const std::vector<TimedCount>& times, const Chosen& chosen) {
  fit.curve = scaling_curve::fit(fit, times, chosen);
  const auto residuals = scaling_curve::residuals(fit, times, fit.curve.best);
  fit.lack = lack_of_fit(residuals, static_cast<int>(std::count(chosen.begin(), chosen.end(), true)));
  fit.from_launches = fit.lack.pure_degrees > 0 && fit.lack.p() >= kLackOfFitLevel;
  if (fit.lack.pure_degrees > 0 && !fit.from_launches)
    least_squares::set_error(fit.curve, std::sqrt(fit.lack.lack), fit.lack.degrees);
  // A residual's size is the error of its own time, and the curve's error is a factor to these sizes. The
  // root of the mean of their squares, times that factor, is the relative standard deviation of a launch.
  double variance = 0;
  for (const Residual& residual : residuals) variance += 1 / residual.weight;
  fit.launch_error = fit.curve.error * std::sqrt(variance / static_cast<double>(residuals.size()));
}

// beta and delta are held at 0 if they are below 0 in nearly all draws, and the curve is fitted again. beta
// is dropped first and alone, because delta may be positive once beta is gone. Returns draws of the
// coefficients.
std::vector<Coefficients> fit_bounded(ScalingFit& fit, const std::vector<TimedCount>& times) {
  Chosen chosen = coefficients(fit);
  for (;;) {
    fit_curve(fit, times, chosen);
    std::vector<Coefficients> draws = scaling_curve::draws(fit.curve);
    const auto is_below = [&](size_t i) {
      return chosen[i] && is_certain(draws, [&](const Coefficients& c) { return c[i] < 0; });
    };
    const size_t below = is_below(kPairwise) ? kPairwise : kBeyond;
    if (!is_below(below)) return draws;
    chosen[below] = false;
  }
}

// Empty where some of the draws lie inside the law's domain.
std::string outside_the_law(ScalingLaw law, const std::vector<Coefficients>& draws) {
  if (is_certain(draws, [](const Coefficients& c) { return c[kSerial] < 0; }))
    return "faster than linear, which the law cannot describe";
  if (law != ScalingLaw::usl &&
      is_certain(draws, [](const Coefficients& c) { return c[kSerial] > c[kAtOne]; }))
    return "more were slower than one, which the law cannot describe";
  return "";
}

// A count's mean step time beside the curve, and the half-width of the 95 % interval of one launch.
struct Distance {
  double units, off, half;
};

std::vector<Distance> distances(const ScalingFit& fit, const std::vector<TimedCount>& times) {
  struct Mean {
    double sum = 0, half = 0, launches = 0;
  };
  std::map<double, Mean> means;
  for (const auto& [units, step_s] : times) {
    Mean& mean = means[units];
    mean.sum += step_s.value;
    mean.half = std::fmax(mean.half, (step_s.high - step_s.low) / 2 / step_s.value);
    ++mean.launches;
  }
  const Coefficients best = constrained(fit.curve, fit.curve.best);
  // The scatter between launches of one count, without what the curve misses: the error by the pure error
  // replaces the curve's error in launch_error.
  const double between = 1.96 * std::sqrt(fit.lack.pure_error) * fit.launch_error / fit.curve.error;
  std::vector<Distance> all;
  all.reserve(means.size());
  for (const auto& [units, mean] : means)
    all.push_back(
        {units, mean.sum / mean.launches / step_s(fit, best, units) - 1, std::fmax(mean.half, between)});
  return all;
}

Distance largest(const std::vector<Distance>& all) {
  return *std::max_element(all.begin(), all.end(), [](const Distance& a, const Distance& b) {
    return std::isnan(b.off) || std::abs(a.off) < std::abs(b.off);
  });
}

// Why the points contradict the curve; empty if they do not. A count contradicts it if it is further off
// than kMostDeviation and than three half-widths of its interval. The counts together contradict it if the
// test of lack of fit says so. That test takes launches to scatter at least as much as their weights say
// (p(1)), which is 1 % or more: launches that agree better do so by chance.
std::string contradiction(const ScalingFit& fit, const std::vector<Distance>& all) {
  std::vector<Distance> far;
  std::copy_if(all.begin(), all.end(), std::back_inserter(far), [](const Distance& one) {
    return std::abs(one.off) > std::fmax(kMostDeviation, 3 * one.half);
  });
  const double p = fit.lack.p(1);
  if (far.empty() && p >= kLackOfFitLevel) return "";
  const Distance worst = largest(far.empty() ? all : far);
  std::string words = fmt::format(
      "does not describe the points: at {:g} the step is {:.{}f} % {} than the best curve", worst.units,
      100 * std::abs(worst.off), std::abs(worst.off) < 0.1 ? 1 : 0, worst.off > 0 ? "longer" : "shorter");
  if (p < kLackOfFitLevel) words += fmt::format("; by chance, as launches scatter, with p = {:.1g}", p);
  return words;
}

// A curve never has a parameter below 0, whatever its data say.
std::vector<Coefficients> physical_draws(const ScalingFit::Curve& curve) {
  std::vector<Coefficients> draws = scaling_curve::draws(curve);
  for (Coefficients& c : draws) c = constrained(curve, c);
  return draws;
}

void add_parameters(ScalingFit& fit, const std::vector<Coefficients>& draws) {
  const Chosen asked = coefficients(fit);
  const auto add = [&](const char* symbol, size_t index) {
    if (!asked[index]) return;
    const auto of = [&](const Coefficients& c) { return parameter(fit.law, c, index); };
    fit.parameters.push_back(
        {symbol, fit.curve.chosen[index] ? estimate(fit.curve, draws, of) : Estimate{0}});
  };
  add(fit.law == ScalingLaw::usl ? "alpha" : "s", kSerial);
  add("beta", kPairwise);
  add("delta", kBeyond);
  if (fit.law == ScalingLaw::amdahl) fit.limit = estimate(fit.curve, draws, largest_speed_up);
  if (fit.law == ScalingLaw::usl)
    fit.peak = estimate(fit.curve, draws, [&](const Coefficients& c) { return units_at_peak(fit, c); });
}

}  // namespace

std::string_view to_text(ScalingLaw law) {
  switch (law) {
    case ScalingLaw::amdahl:
      return "Amdahl";
    case ScalingLaw::gustafson:
      return "Gustafson";
    case ScalingLaw::usl:
      return "USL";
  }
  return "";
}

std::string to_text(const ScalingForm& form) {
  return std::string(to_text(form.law)) + (form.node > 0 ? ", 2 levels" : "");
}

ScalingFit fit_scaling(const ScalingForm& form, const std::vector<TimedCount>& all) {
  ScalingFit fit(form);
  const std::vector<TimedCount> times = usable(all);
  fit.refused = too_few_counts(form, times);
  if (!fit.refused.empty()) {
    fit.further = further_counts(form, times, false);
    return fit;
  }
  const std::vector<Coefficients> draws = fit_bounded(fit, times);
  const std::vector<Distance> off = distances(fit, times);
  fit.deviation = std::abs(largest(off).off);
  if (!std::isfinite(fit.deviation)) fit.refused = "no curve goes through these times";
  if (fit.refused.empty()) fit.refused = outside_the_law(form.law, draws);
  if (fit.refused.empty()) fit.refused = contradiction(fit, off);
  if (!fit.refused.empty()) return fit;
  add_parameters(fit, draws);
  if (fit.lack.degrees == 0) fit.further = further_counts(form, times, true);
  return fit;
}

Estimate fitted_crossing(const ScalingFit& fit, double base_units, double efficiency) {
  return estimate(fit.curve, physical_draws(fit.curve), [&](const Coefficients& c) {
    return units_at_cost(fit, c, cost(fit, c, base_units) / efficiency);
  });
}

double fitted_speed_up(const ScalingFit& fit, double units) {
  const Coefficients best = constrained(fit.curve, fit.curve.best);
  return units * cost(fit, best, 1) / cost(fit, best, units);
}

Estimate predicted_step_s(const ScalingFit& fit, double units, size_t launches) {
  return scaling_curve::predicted_step_s(fit, fit.curve, units,
                                         fit.launch_error / std::sqrt(static_cast<double>(launches)));
}

Extrapolation hold_out_largest(const ScalingForm& form, const std::vector<TimedCount>& times) {
  double most = 0, sum = 0;
  for (const TimedCount& time : times) most = std::max(most, time.units);
  std::vector<TimedCount> others;
  size_t launches = 0;
  for (const TimedCount& time : times) {
    if (time.units < most) {
      others.push_back(time);
    } else {
      sum += time.step_s.value;
      ++launches;
    }
  }
  const ScalingFit fit = fit_scaling(form, others);
  if (!fit.refused.empty()) return {};
  return {sum / static_cast<double>(launches), predicted_step_s(fit, most, launches)};
}

}  // namespace shardmark
