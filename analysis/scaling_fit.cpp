// Fits, and refuses to fit.
#include "analysis/scaling_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "analysis/scaling_curve.h"

namespace shardmark {
namespace {

using scaling_curve::Coefficients;

// A curve that is further from a point than this, and than thrice the half-width of the point's own interval,
// does not describe it: launches of one point vary by 5 to 10 % on shared machines.
constexpr double kMostDeviation = 0.10;

// s lies in [0, 1]; alpha and beta have no upper end. Without a positive time at one unit nothing is bounded.
double parameter(ScalingLaw law, const Coefficients& c, size_t index) {
  if (!(c[0] > 0)) return law == ScalingLaw::usl ? std::numeric_limits<double>::infinity() : 1;
  const double value = std::max(c[index] / c[0], 0.0);
  return law == ScalingLaw::usl ? value : std::min(value, 1.0);
}

double largest_throughput_at(const Coefficients& c) {
  const double alpha = parameter(ScalingLaw::usl, c, 1), beta = parameter(ScalingLaw::usl, c, 2);
  return std::sqrt(std::max(1 - alpha, 0.0) / beta);
}

template <class Function>
Estimate estimate(const ScalingFit::Curve& curve, const std::vector<Coefficients>& draws, Function of) {
  std::vector<double> drawn;
  drawn.reserve(draws.size());
  for (const Coefficients& c : draws) drawn.push_back(of(c));
  return scaling_curve::estimate(of(scaling_curve::constrained(curve, curve.best)), std::move(drawn));
}

std::string deviation_too_large(const ScalingFit& fit, const std::vector<TimedCount>& times) {
  const Coefficients best = scaling_curve::constrained(fit.curve, fit.curve.best);
  std::string worst;
  double most = 0;
  for (const TimedCount& time : times) {
    const double off = time.step_s.value / scaling_curve::step_s(fit, best, time.units) - 1;
    const double half = (time.step_s.high - time.step_s.low) / 2 / time.step_s.value;
    if (std::abs(off) <= std::fmax(kMostDeviation, 3 * half) || std::abs(off) <= most) continue;
    most = std::abs(off);
    worst = fmt::format("does not describe the points: at {:g} the step is {:.0f} % {} than the best curve",
                        time.units, 100 * most, off > 0 ? "longer" : "shorter");
  }
  return worst;
}

// Whether the data leave no doubt of it: so many of the draws.
template <class Condition>
bool is_certain(const std::vector<Coefficients>& draws, Condition condition) {
  constexpr double kCertain = 0.975;
  const auto count = std::count_if(draws.begin(), draws.end(), condition);
  return static_cast<double>(count) > kCertain * static_cast<double>(draws.size());
}

// Empty where some of the draws lie inside the law's domain.
std::string outside_the_law(ScalingLaw law, const std::vector<Coefficients>& draws) {
  if (is_certain(draws, [](const Coefficients& c) { return c[1] < 0; }))
    return "faster than linear, which the law does not know";
  if (law != ScalingLaw::usl && is_certain(draws, [](const Coefficients& c) { return c[1] > c[0]; }))
    return "more were slower than one, which the law does not know";
  return "";
}

// A curve never has a parameter below 0, whatever its data say.
std::vector<Coefficients> physical_draws(const ScalingFit::Curve& curve) {
  std::vector<Coefficients> draws = scaling_curve::draws(curve);
  for (Coefficients& c : draws) c = scaling_curve::constrained(curve, c);
  return draws;
}

std::vector<TimedCount> usable(const std::vector<TimedCount>& times) {
  std::vector<TimedCount> kept;
  for (const TimedCount& time : times)
    if (std::isfinite(time.step_s.value) && time.step_s.value > 0) kept.push_back(time);
  return kept;
}

std::string too_few(ScalingLaw law, const std::vector<TimedCount>& times) {
  std::set<double> counts;
  for (const TimedCount& time : times) counts.insert(time.units);
  const size_t needed = scaling_curve::num_coefficients(law) + 2;
  if (counts.size() >= needed) return "";
  return fmt::format("{} count{}; a fit needs {}", counts.size(), counts.size() == 1 ? "" : "s", needed);
}

// NaN where the curve is not above 0 everywhere.
double largest_deviation(const ScalingFit& fit, const std::vector<TimedCount>& times) {
  const Coefficients best = scaling_curve::constrained(fit.curve, fit.curve.best);
  double largest = 0;
  for (const TimedCount& time : times) {
    const double off = std::abs(time.step_s.value / scaling_curve::step_s(fit, best, time.units) - 1);
    if (std::isnan(off)) return off;
    largest = std::max(off, largest);
  }
  return largest;
}

void add_parameters(ScalingFit& fit, const std::vector<Coefficients>& draws) {
  const auto add = [&](const char* symbol, size_t index) {
    const auto of = [&](const Coefficients& c) { return parameter(fit.law, c, index); };
    fit.parameters.push_back({symbol, estimate(fit.curve, draws, of)});
  };
  add(fit.law == ScalingLaw::usl ? "alpha" : "s", 1);
  if (fit.law == ScalingLaw::usl && fit.curve.num_coefficients == 3) add("beta", 2);
  if (fit.law == ScalingLaw::usl && fit.curve.num_coefficients == 2) fit.parameters.push_back({"beta", {0}});
  const Estimate& s = fit.parameters.front().estimate;
  if (fit.law == ScalingLaw::amdahl) fit.limit = {1 / s.value, 1 / s.high, 1 / s.low};
  if (fit.law == ScalingLaw::usl) fit.limit = estimate(fit.curve, draws, largest_throughput_at);
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

ScalingFit fit_scaling(ScalingLaw law, Scaling scaling, const std::vector<TimedCount>& all) {
  ScalingFit fit;
  fit.law = law;
  fit.scaling = scaling;
  const std::vector<TimedCount> times = usable(all);
  fit.refused = too_few(law, times);
  if (!fit.refused.empty()) return fit;
  fit.curve = scaling_curve::fit(law, scaling, times, scaling_curve::num_coefficients(law));
  std::vector<Coefficients> draws = scaling_curve::draws(fit.curve);
  if (is_certain(draws, [](const Coefficients& c) { return c[2] < 0; })) {  // beta is held at 0
    fit.curve = scaling_curve::fit(law, scaling, times, 2);
    draws = scaling_curve::draws(fit.curve);
  }
  fit.deviation = largest_deviation(fit, times);
  if (!std::isfinite(fit.deviation)) fit.refused = "no curve goes through these times";
  if (fit.refused.empty()) fit.refused = outside_the_law(law, draws);
  if (fit.refused.empty()) fit.refused = deviation_too_large(fit, times);
  if (fit.refused.empty()) add_parameters(fit, draws);
  return fit;
}

Estimate fitted_step_s(const ScalingFit& fit, double units) {
  return estimate(fit.curve, physical_draws(fit.curve),
                  [&](const Coefficients& c) { return scaling_curve::step_s(fit, c, units); });
}

Estimate fitted_efficiency(const ScalingFit& fit, double base_units, double units) {
  return estimate(fit.curve, physical_draws(fit.curve), [&](const Coefficients& c) {
    return scaling_curve::cost(fit.law, c, base_units) / scaling_curve::cost(fit.law, c, units);
  });
}

Estimate fitted_crossing(const ScalingFit& fit, double base_units, double efficiency) {
  return estimate(fit.curve, physical_draws(fit.curve), [&](const Coefficients& c) {
    return scaling_curve::units_at_cost(fit.law, c, scaling_curve::cost(fit.law, c, base_units) / efficiency);
  });
}

}  // namespace shardmark
