// Note [Bootstrap of a linear curve]: the parametric bootstrap draws every step time anew around the fitted
// curve, with relative errors of the residuals' size, and fits again. Because the curve is linear in its
// coefficients, the coefficients of such a fit are best + spread z with normal z, so they are drawn directly.
// 4 to 8 residuals know the size of the errors badly; every draw therefore takes another size, s sqrt(degrees
// / chi^2), which widens the intervals as Student's t does. A ratio of coefficients then gets the interval of
// Fieller's theorem. Sources: Davison and Hinkley, Bootstrap Methods and their Application, 1997, 6.3
// and 7.2; Fieller, J. R. Stat. Soc. B 16(2), 1954.
#include "analysis/scaling_curve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>

namespace shardmark::scaling_curve {

using least_squares::dot;
using least_squares::Row;

size_t num_coefficients(ScalingLaw law) { return law == ScalingLaw::usl ? 3 : 2; }

Coefficients terms(ScalingLaw law, double units) {
  if (law == ScalingLaw::gustafson) return {1, 1 / units - 1, 0};
  return {1, units - 1, law == ScalingLaw::usl ? units * (units - 1) : 0};
}

double response(ScalingLaw law, Scaling scaling, double units, double step_s) {
  const double cost = scaling == Scaling::strong ? units * step_s : step_s;
  return law == ScalingLaw::gustafson ? 1 / cost : cost;
}

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr size_t kPairs = 2000;  // of draws: z and -z, so that both ends of an interval are equally fine

// The residual of a row is relative to the curve, where one is given and above 0, else to the measured value.
Row row(ScalingLaw law, Scaling scaling, const TimedCount& time, const Coefficients* curve) {
  const double y = response(law, scaling, time.units, time.step_s.value);
  Coefficients x = terms(law, time.units);
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

double cost(ScalingLaw law, const Coefficients& c, double units) {
  const double y = dot(c, terms(law, units));
  if (!(y > 0)) return Measures::kNone;
  return law == ScalingLaw::gustafson ? 1 / y : y;
}

double step_s(const ScalingFit& fit, const Coefficients& c, double units) {
  return cost(fit.law, c, units) / (fit.scaling == Scaling::strong ? units : 1);
}

double units_at_cost(ScalingLaw law, const Coefficients& c, double cost) {
  if (law == ScalingLaw::gustafson) {  // 1 / cost = c0 - c1 + c1 / n
    const double rest = 1 / cost - c[0] + c[1];
    return rest > 0 ? c[1] / rest : kInfinity;
  }
  const double linear = c[1] - c[2], constant = c[0] - c[1] - cost;  // c2 n^2 + linear n + constant = 0
  if (c[2] > 0) return (-linear + std::sqrt(linear * linear - 4 * c[2] * constant)) / (2 * c[2]);
  return c[1] > 0 ? -constant / c[1] : kInfinity;
}

ScalingFit::Curve fit(ScalingLaw law, Scaling scaling, const std::vector<TimedCount>& times,
                      size_t num_coefficients) {
  ScalingFit::Curve curve;
  // Relative residuals: first relative to what was measured, then twice to the curve itself.
  for (int pass = 0; pass < 3; ++pass) {
    std::vector<Row> rows;
    rows.reserve(times.size());
    for (const TimedCount& time : times)
      rows.push_back(row(law, scaling, time, pass == 0 ? nullptr : &curve.best));
    curve = least_squares::fit(rows, num_coefficients);
  }
  return curve;
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
