// Note [Bootstrap of a linear curve]: the parametric bootstrap draws every step time anew around the fitted
// curve, with relative errors of the residuals' size, and fits again. Because the curve is linear in its
// coefficients, the coefficients of such a fit are best + spread z with normal z, so they are drawn directly.
// 4 to 8 residuals know the size of the errors badly; every draw therefore takes another size, s sqrt(degrees
// / chi^2), which widens the intervals as Student's t does. A ratio of coefficients then gets the interval of
// Fieller's theorem. Sources: Davison and Hinkley, Bootstrap Methods and their Application, 1997, 6.3
// and 7.2; Fieller, J. R. Stat. Soc. B 16(2), 1954.
#include "analysis/stats/curve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "base/two_samples.h"

namespace shardmark::scaling_curve {

using least_squares::dot;
using least_squares::Row;

Chosen coefficients(const ScalingForm& form) {
  return {true, true, form.law == ScalingLaw::usl, form.node > 0};
}

Coefficients terms(const ScalingForm& form, double units) {
  const double beyond = form.node > 0 ? std::max(units - form.node, 0.0) : 0;
  if (form.law == ScalingLaw::gustafson) return {1, 1 / units - 1, 0, -beyond / units};
  return {1, units - 1, form.law == ScalingLaw::usl ? units * (units - 1) : 0, beyond};
}

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr size_t kPairs = 2000;  // of draws: z and -z, so that both ends of an interval are equally fine

double response(const ScalingForm& form, const TimedCount& time) {
  const double cost = time.step_s.value * (form.scaling == Scaling::strong ? time.units : 1);
  return form.law == ScalingLaw::gustafson ? 1 / cost : cost;
}

double to_step_s(const ScalingForm& form, double units, double response) {
  if (!(response > 0)) return Measures::kNone;
  const double cost = form.law == ScalingLaw::gustafson ? 1 / response : response;
  return cost / (form.scaling == Scaling::strong ? units : 1);
}

// The residual of a row is relative to the curve, where one is given and above 0, else to the measured value.
Row row(const ScalingForm& form, const TimedCount& time, const Coefficients* curve) {
  const double y = response(form, time);
  Coefficients x = terms(form, time.units);
  const double fitted = curve == nullptr ? y : dot(*curve, x);
  const double scale = (fitted > 0 ? fitted : y) * least_squares::relative_error(time.step_s);
  for (double& term : x) term /= scale;
  return {x, y / scale};
}

// The same for every fit, so that a report over thousands of them draws once.
const std::vector<least_squares::Draw>& repetitions(int degrees) {
  thread_local std::map<int, std::vector<least_squares::Draw>> known;
  const auto [found, is_new] = known.try_emplace(degrees);
  if (is_new) {
    std::mt19937_64 random(1);
    least_squares::Draws draws(degrees);
    for (size_t pair = 0; pair < kPairs; ++pair) found->second.push_back(draws.next(random));
  }
  return found->second;
}

}  // namespace

double cost(const ScalingForm& form, const Coefficients& c, double units) {
  return step_s(form, c, units) * (form.scaling == Scaling::strong ? units : 1);
}

double step_s(const ScalingForm& form, const Coefficients& c, double units) {
  return to_step_s(form, units, dot(c, terms(form, units)));
}

double units_at_cost(const ScalingForm& form, const Coefficients& c, double cost) {
  // First as if all units were on one node, then beyond it, where delta adds to the curve.
  const auto solve = [&](double delta, double node) {
    if (form.law == ScalingLaw::gustafson) {  // 1 / cost = c0 - c1 - delta + (c1 + delta node) / n
      const double rest = 1 / cost - c[kAtOne] + c[kSerial] + delta;
      return rest > 0 ? (c[kSerial] + delta * node) / rest : kInfinity;
    }
    const double linear = c[kSerial] - c[kPairwise] + delta;  // c2 n^2 + linear n + constant = 0
    const double constant = c[kAtOne] - c[kSerial] - delta * node - cost;
    if (c[kPairwise] > 0)
      return (-linear + std::sqrt(linear * linear - 4 * c[kPairwise] * constant)) / (2 * c[kPairwise]);
    return linear > 0 ? -constant / linear : kInfinity;
  };
  const double units = solve(0, 0);
  return form.node == 0 || units <= form.node ? units : solve(c[kBeyond], form.node);
}

// X = n / (constant + linear n + c2 n^2) is largest at sqrt(constant / c2).
double units_at_peak(const ScalingForm& form, const Coefficients& c) {
  const auto peak = [&](double constant) {
    return c[kPairwise] > 0 ? std::sqrt(std::max(constant, 0.0) / c[kPairwise]) : kInfinity;
  };
  const double inside = peak(c[kAtOne] - c[kSerial]);
  if (form.node == 0 || inside <= form.node) return inside;
  return std::max(peak(c[kAtOne] - c[kSerial] - c[kBeyond] * form.node), form.node);
}

ScalingFit::Curve fit(const ScalingForm& form, const std::vector<TimedCount>& times, const Chosen& chosen) {
  ScalingFit::Curve curve;
  // Relative residuals: first relative to what was measured, then twice to the curve itself.
  for (int pass = 0; pass < 3; ++pass) {
    std::vector<Row> rows;
    rows.reserve(times.size());
    for (const TimedCount& time : times) rows.push_back(row(form, time, pass == 0 ? nullptr : &curve.best));
    curve = least_squares::fit(rows, chosen);
  }
  return curve;
}

std::vector<Residual> residuals(const ScalingForm& form, const std::vector<TimedCount>& times,
                                const Coefficients& c) {
  std::vector<Residual> all;
  all.reserve(times.size());
  for (const TimedCount& time : times)
    all.push_back({time.units, response(form, time) / dot(c, terms(form, time.units)) - 1,
                   std::pow(least_squares::relative_error(time.step_s), -2)});
  return all;
}

Estimate predicted_step_s(const ScalingForm& form, const ScalingFit::Curve& curve, double units,
                          double error) {
  // A new mean of launches differs from the curve's value for two reasons: the coefficients have errors,
  // whose variance at this count is the squared length of spread' x, and the launches scatter themselves.
  const Coefficients x = terms(form, units);
  const double y = dot(curve.best, x);
  double variance = std::pow(error * y, 2);
  for (size_t column = 0; column < x.size(); ++column) {
    double moved = 0;
    for (size_t i = 0; i < x.size(); ++i) moved += curve.spread[i][column] * x[i];
    variance += moved * moved;
  }
  const double half = student_t(0.05, static_cast<size_t>(curve.degrees)) * std::sqrt(variance);
  double low = to_step_s(form, units, y - half), high = to_step_s(form, units, y + half);
  if (form.law == ScalingLaw::gustafson) std::swap(low, high);
  const double value = step_s(form, constrained(curve, curve.best), units);
  return {value, std::fmin(std::isnan(low) ? 0 : low, value),
          std::isnan(high) ? kInfinity : std::max(high, value)};
}

Coefficients constrained(const ScalingFit::Curve& curve, const Coefficients& c) {
  return least_squares::nearest_bounded(curve, c, 1);
}

std::vector<Coefficients> draws(const ScalingFit::Curve& curve) {
  std::vector<Coefficients> drawn;
  drawn.reserve(2 * kPairs);
  for (const least_squares::Draw& draw : repetitions(curve.degrees)) {
    const Coefficients step = least_squares::step(curve, draw);
    Coefficients here = curve.best, there = curve.best;
    for (size_t i = 0; i < step.size(); ++i) {
      here[i] += step[i];
      there[i] -= step[i];
    }
    drawn.push_back(here);
    drawn.push_back(there);
  }
  return drawn;
}

Estimate estimate(double value, std::vector<double> drawn) {
  std::replace_if(
      drawn.begin(), drawn.end(), [](double one) { return std::isnan(one); }, kInfinity);
  const auto at = [&](double q) {
    const auto place = drawn.begin() + std::lround(q * static_cast<double>(drawn.size() - 1));
    std::nth_element(drawn.begin(), place, drawn.end());
    return *place;
  };
  const double low = at(0.025), high = at(0.975);
  return {value, std::min(low, value), std::max(high, value)};
}

}  // namespace shardmark::scaling_curve
