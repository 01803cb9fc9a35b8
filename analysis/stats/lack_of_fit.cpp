#include "analysis/stats/lack_of_fit.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace shardmark {
namespace {

// The continued fraction of the incomplete beta function, by Lentz's method: it converges fast where
// x < (a + 1) / (a + b + 2).
double beta_fraction(double x, double a, double b) {
  constexpr double kTiny = 1e-300;
  const auto away_from_0 = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1, d = 1 / away_from_0(1 - (a + b) * x / (a + 1)), fraction = d;
  for (int m = 1; m < 1000; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    double change = 1;
    for (const double term : {even, odd}) {
      d = 1 / away_from_0(1 + term * d);
      c = away_from_0(1 + term / c);
      change = c * d;
      fraction *= change;
    }
    if (std::abs(change - 1) < 1e-14) break;
  }
  return fraction;
}

// I_x(a, b)
double incomplete_beta(double x, double a, double b) {
  if (x <= 0 || x >= 1) return x <= 0 ? 0 : 1;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(x, a, b) / a;
  return 1 - front * beta_fraction(1 - x, b, a) / b;
}

}  // namespace

double fisher_p(double f, int degrees, int other_degrees) {
  // P(F >= f) is the incomplete beta function at m / (m + n f), for n and m degrees of freedom of the
  // numerator and the denominator.
  if (!(f > 0)) return 1;
  return incomplete_beta(other_degrees / (other_degrees + degrees * f), other_degrees / 2.0, degrees / 2.0);
}

double LackOfFit::p(double least) const {
  if (degrees < 1 || pure_degrees < 1 || lack <= 0) return 1;
  return fisher_p(lack / std::max(pure_error, least), degrees, pure_degrees);
}

LackOfFit lack_of_fit(const std::vector<Residual>& residuals, int num_coefficients) {
  // At each place, the weighted sum of squared residuals is split: the part of their mean is how far the
  // place is off the curve, and the part around their mean is the scatter between launches.
  struct Place {
    double weight = 0, sum = 0, squares = 0;
  };
  std::map<double, Place> places;
  for (const auto& [at, value, weight] : residuals) {
    Place& place = places[at];
    place.weight += weight;
    place.sum += weight * value;
    place.squares += weight * value * value;
  }
  LackOfFit result;
  result.degrees = static_cast<int>(places.size()) - num_coefficients;
  result.pure_degrees = static_cast<int>(residuals.size() - places.size());
  for (const auto& [at, place] : places) {
    const double of_mean = place.sum * place.sum / place.weight;
    result.lack += of_mean;
    result.pure_error += std::max(place.squares - of_mean, 0.0);
  }
  result.lack = result.degrees > 0 ? result.lack / result.degrees : 0;
  result.pure_error = result.pure_degrees > 0 ? result.pure_error / result.pure_degrees : 0;
  return result;
}

}  // namespace shardmark
