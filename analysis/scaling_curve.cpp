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
#include <random>

namespace shardmark::scaling_curve {
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

using Matrix = std::array<std::array<double, 3>, 3>;

double dot(const Coefficients& a, const Coefficients& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

// Solves G x = b over the coefficients that `free` names; the others are 0. G is positive definite.
Coefficients solve(const Matrix& gram, const Coefficients& b, const std::array<bool, 3>& free) {
  Matrix m = gram;
  Coefficients x = b;
  for (size_t i = 0; i < 3; ++i)
    if (!free[i]) {
      for (size_t j = 0; j < 3; ++j) m[i][j] = m[j][i] = 0;
      m[i][i] = 1;
      x[i] = 0;
    }
  for (size_t i = 0; i < 3; ++i)
    for (size_t j = i + 1; j < 3; ++j) {
      const double factor = m[j][i] / m[i][i];
      for (size_t k = i; k < 3; ++k) m[j][k] -= factor * m[i][k];
      x[j] -= factor * x[i];
    }
  for (size_t i = 3; i-- > 0;) {
    for (size_t j = i + 1; j < 3; ++j) x[i] -= m[i][j] * x[j];
    x[i] /= m[i][i];
  }
  return x;
}

// Upper triangle U with U'U = G^-1, transposed: lower triangle of a square root of G^-1.
Matrix inverse_root(const Matrix& gram, size_t size) {
  Matrix covariance = {};
  std::array<bool, 3> free = {};
  for (size_t i = 0; i < size; ++i) free[i] = true;
  for (size_t i = 0; i < size; ++i) {
    Coefficients unit = {};
    unit[i] = 1;
    const Coefficients column = solve(gram, unit, free);
    for (size_t j = 0; j < size; ++j) covariance[j][i] = column[j];
  }
  Matrix root = {};
  for (size_t i = 0; i < size; ++i)
    for (size_t j = 0; j <= i; ++j) {
      double rest = covariance[i][j];
      for (size_t k = 0; k < j; ++k) rest -= root[i][k] * root[j][k];
      root[i][j] = i == j ? std::sqrt(std::max(rest, 0.0)) : (root[j][j] > 0 ? rest / root[j][j] : 0);
    }
  return root;
}

struct Row {
  Coefficients terms;
  double target;
};

// What a time is off the curve by, at 68 %, up to a common factor: launches differ by some percent beyond
// what the steps of one launch show.
double spread_of(const TimedCount& time) {
  constexpr double kLaunches = 0.01;
  const double half = (time.step_s.high - time.step_s.low) / 2 / time.step_s.value;
  return std::isfinite(half) ? std::hypot(kLaunches, half / 1.96) : kLaunches;
}

// The residual of a row is relative to the curve, where one is given and above 0, else to the measured value.
Row row(ScalingLaw law, Scaling scaling, const TimedCount& time, const Coefficients* curve) {
  const double y = response(law, scaling, time.units, time.step_s.value);
  Coefficients x = terms(law, time.units);
  const double fitted = curve == nullptr ? y : dot(*curve, x);
  const double scale = (fitted > 0 ? fitted : y) * spread_of(time);
  for (double& term : x) term /= scale;
  return {x, y / scale};
}

// Sets best and gram; returns the sum of squared residuals.
double solve(const std::vector<Row>& rows, ScalingFit::Curve& curve) {
  curve.gram = {};
  Coefficients right = {};
  for (const Row& row : rows)
    for (size_t i = 0; i < 3; ++i) {
      right[i] += row.terms[i] * row.target;
      for (size_t j = 0; j < 3; ++j) curve.gram[i][j] += row.terms[i] * row.terms[j];
    }
  curve.best = solve(curve.gram, right, {true, true, curve.num_coefficients == 3});
  double squares = 0;
  for (const Row& row : rows) squares += std::pow(row.target - dot(row.terms, curve.best), 2);
  return squares;
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
  curve.num_coefficients = num_coefficients;
  curve.degrees = static_cast<int>(times.size() - curve.num_coefficients);
  // Relative residuals: first relative to what was measured, then twice to the curve itself.
  double squares = 0;
  for (int pass = 0; pass < 3; ++pass) {
    std::vector<Row> rows;
    rows.reserve(times.size());
    for (const TimedCount& time : times)
      rows.push_back(row(law, scaling, time, pass == 0 ? nullptr : &curve.best));
    squares = solve(rows, curve);
  }
  const double size = std::sqrt(squares / curve.degrees);
  curve.spread = inverse_root(curve.gram, curve.num_coefficients);
  for (auto& line : curve.spread)
    for (double& value : line) value *= size;
  return curve;
}

Coefficients constrained(const ScalingFit::Curve& curve, const Coefficients& c) {
  if (c[1] >= 0 && c[2] >= 0) return c;
  Coefficients right = {};
  for (size_t i = 0; i < 3; ++i) right[i] = dot({curve.gram[i][0], curve.gram[i][1], curve.gram[i][2]}, c);
  // The objective falls with right . x; try the parameters that may stay above 0, most first.
  Coefficients nearest = solve(curve.gram, right, {true, false, false});
  for (const auto& free : {std::array{true, true, false}, std::array{true, false, true}}) {
    if (curve.num_coefficients < 3 && free[2]) continue;
    const Coefficients x = solve(curve.gram, right, free);
    if (x[1] >= 0 && x[2] >= 0 && dot(right, x) > dot(right, nearest)) nearest = x;
  }
  return nearest;
}

std::vector<Coefficients> draws(const ScalingFit::Curve& curve) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  std::gamma_distribution<double> half_chi_squared(curve.degrees / 2.0);
  std::vector<Coefficients> drawn;
  drawn.reserve(2 * kPairs);
  for (size_t pair = 0; pair < kPairs; ++pair) {
    const Coefficients z = {normal(random), normal(random), normal(random)};
    const double size = std::sqrt(curve.degrees / (2 * half_chi_squared(random)));
    Coefficients here = curve.best, there = curve.best;
    for (size_t i = 0; i < 3; ++i) {
      const double step = size * dot(curve.spread[i], z);
      here[i] += step;
      there[i] -= step;
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
