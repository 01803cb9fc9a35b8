// Normal equations of at most four coefficients: rows are scaled to relative residuals, so they are well
// conditioned.
#include "analysis/stats/least_squares.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/two_samples.h"

namespace shardmark::least_squares {
namespace {

// Solves G x = b over the chosen coefficients; the others are 0. Rows and columns of coefficients that are
// not chosen become those of the identity, so that one code serves every choice. Gaussian elimination needs
// no pivoting here, because G is positive definite.
Coefficients solve(const Matrix& gram, const Coefficients& b, const Chosen& chosen) {
  Matrix m = gram;
  Coefficients x = b;
  for (size_t i = 0; i < kMost; ++i)
    if (!chosen[i]) {
      for (size_t j = 0; j < kMost; ++j) m[i][j] = m[j][i] = 0;
      m[i][i] = 1;
      x[i] = 0;
    }
  for (size_t i = 0; i < kMost; ++i)
    for (size_t j = i + 1; j < kMost; ++j) {
      const double factor = m[j][i] / m[i][i];
      for (size_t k = i; k < kMost; ++k) m[j][k] -= factor * m[i][k];
      x[j] -= factor * x[i];
    }
  for (size_t i = kMost; i-- > 0;) {
    for (size_t j = i + 1; j < kMost; ++j) x[i] -= m[i][j] * x[j];
    x[i] /= m[i][i];
  }
  return x;
}

Matrix gram_of(const std::vector<Row>& rows) {
  Matrix gram = {};
  for (const Row& row : rows)
    for (size_t i = 0; i < kMost; ++i)
      for (size_t j = 0; j < kMost; ++j) gram[i][j] += row.terms[i] * row.terms[j];
  return gram;
}

// Column by column, as the solution for each unit vector. Rows and columns of coefficients that are not
// chosen stay 0.
Matrix inverse(const Matrix& gram, const Chosen& chosen) {
  Matrix inverse = {};
  for (size_t i = 0; i < kMost; ++i) {
    if (!chosen[i]) continue;
    Coefficients unit = {};
    unit[i] = 1;
    const Coefficients column = solve(gram, unit, chosen);
    for (size_t j = 0; j < kMost; ++j) inverse[j][i] = column[j];
  }
  return inverse;
}

bool has_others(const Chosen& some, const Chosen& all) {
  for (size_t i = 0; i < kMost; ++i)
    if (some[i] && !all[i]) return true;
  return false;
}

// The lower triangle L with L L' = m (Cholesky). m may be singular: coefficients that are not chosen have a
// variance of 0, and rounding may make a variance slightly negative. Both become 0.
Matrix root(const Matrix& m) {
  Matrix root = {};
  for (size_t i = 0; i < kMost; ++i)
    for (size_t j = 0; j <= i; ++j) {
      double rest = m[i][j];
      for (size_t k = 0; k < j; ++k) rest -= root[i][k] * root[j][k];
      root[i][j] = i == j ? std::sqrt(std::max(rest, 0.0)) : (root[j][j] > 0 ? rest / root[j][j] : 0);
    }
  return root;
}

}  // namespace

double dot(const Coefficients& a, const Coefficients& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

Chosen first(size_t count) {
  Chosen chosen = {};
  std::fill_n(chosen.begin(), count, true);
  return chosen;
}

// Gram and Schmidt: `rest` is the squared length of what is left of a term's column after its projection on
// the columns of the terms before it. If that is only a billionth of the column's own squared length, it is
// rounding, and the term follows from the others.
bool is_determined(const std::vector<Row>& rows, const Chosen& chosen) {
  constexpr double kLeast = 1e-9;  // of its square
  const Matrix gram = gram_of(rows);
  Chosen others = {};
  for (size_t i = 0; i < kMost; ++i) {
    if (!chosen[i]) continue;
    const double rest = gram[i][i] - dot(gram[i], solve(gram, gram[i], others));
    if (!(rest > kLeast * gram[i][i])) return false;
    others[i] = true;
  }
  return true;
}

Fit fit(const std::vector<Row>& rows, const Chosen& chosen) {
  Fit fit;
  fit.chosen = chosen;
  fit.degrees =
      static_cast<int>(rows.size()) - static_cast<int>(std::count(chosen.begin(), chosen.end(), true));
  fit.gram = gram_of(rows);
  Coefficients right = {};
  for (const Row& row : rows)
    for (size_t i = 0; i < kMost; ++i) right[i] += row.terms[i] * row.target;
  fit.best = solve(fit.gram, right, chosen);
  double squares = 0;
  for (const Row& row : rows) squares += std::pow(row.target - dot(row.terms, fit.best), 2);
  set_error(fit, std::sqrt(squares / fit.degrees), fit.degrees);
  return fit;
}

void set_error(Fit& fit, double error, int degrees) {
  fit.error = error;
  fit.degrees = degrees;
  // The covariance of least-squares coefficients is error^2 times the inverse of A'A. Its root turns
  // independent normal numbers into coefficients that vary together in the right way.
  fit.spread = root(inverse(fit.gram, fit.chosen));
  for (Coefficients& line : fit.spread)
    for (double& value : line) value *= error;
}

void add_error(Fit& fit, const Coefficients& step) {
  // Independent errors add up as covariances: that of the fit, L L', and that of the step, step step'.
  Matrix covariance = {};
  for (size_t i = 0; i < kMost; ++i)
    for (size_t j = 0; j < kMost; ++j)
      covariance[i][j] = dot(fit.spread[i], fit.spread[j]) + step[i] * step[j];
  fit.spread = root(covariance);
}

Coefficients nearest_bounded(const Fit& fit, const Coefficients& c, size_t first_bounded) {
  const auto is_allowed = [&](const Coefficients& x) {
    return std::all_of(x.begin() + static_cast<std::ptrdiff_t>(first_bounded), x.end(),
                       [](double value) { return value >= 0; });
  };
  if (is_allowed(c)) return c;
  // Which coefficients lie at their bound 0 is not known beforehand, so every choice is tried: at most 16.
  // Within a choice, the nearest point solves G x = G c over the coefficients that are not held at 0. Its
  // squared distance from c is c'G c - right . x, so among the solutions that keep to the bounds the one
  // with the largest right . x is nearest.
  Coefficients right = {}, nearest = {};
  for (size_t i = 0; i < kMost; ++i) right[i] = dot(fit.gram[i], c);
  // The objective falls with right . x; any of the bounded coefficients may lie at its bound.
  double most = -std::numeric_limits<double>::infinity();
  for (size_t mask = 0; mask < size_t{1} << kMost; mask += size_t{1} << first_bounded) {
    Chosen chosen = first(first_bounded);
    for (size_t i = first_bounded; i < kMost; ++i) chosen[i] = (mask >> i & 1) != 0;
    if (has_others(chosen, fit.chosen)) continue;
    const Coefficients x = solve(fit.gram, right, chosen);
    if (!is_allowed(x) || dot(right, x) <= most) continue;
    most = dot(right, x);
    nearest = x;
  }
  return nearest;
}

// If s is the standard deviation of residuals with so many degrees of freedom, degrees s^2 / sigma^2
// follows chi-squared. A repetition therefore draws the size of its errors as s sqrt(degrees /
// chi-squared).
Draw Draws::next(std::mt19937_64& random) {
  const Coefficients z = {normal_(random), normal_(random), normal_(random), normal_(random)};
  return {z, std::sqrt(degrees_ / (2 * half_chi_squared_(random)))};
}

Coefficients step(const Fit& fit, const Draw& draw) {
  Coefficients step = {};
  for (size_t i = 0; i < kMost; ++i) step[i] = draw.size * dot(fit.spread[i], draw.normal);
  return step;
}

Estimate estimate(const Fit& fit, size_t index) {
  const double half = student_t(0.05, static_cast<size_t>(fit.degrees)) *
                      std::sqrt(dot(fit.spread[index], fit.spread[index]));
  return {fit.best[index], fit.best[index] - half, fit.best[index] + half};
}

// A half-width of 95 % is 1.96 standard deviations. The 1 % between launches is added as an independent
// error.
double relative_error(const Estimate& time) {
  constexpr double kLaunches = 0.01;
  const double half = (time.high - time.low) / 2 / time.value;
  return std::isfinite(half) ? std::hypot(kLaunches, half / 1.96) : kLaunches;
}

}  // namespace shardmark::least_squares
