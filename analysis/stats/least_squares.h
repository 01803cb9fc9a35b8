// Curves that are linear in up to four coefficients, fitted to times by weighted least squares: the fit,
// what its errors are like, and the nearest coefficients that are not below 0.
#pragma once

#include <array>
#include <random>
#include <vector>

#include "analysis/frame/estimate.h"

namespace shardmark::least_squares {

inline constexpr size_t kMost = 4;
using Coefficients = std::array<double, kMost>;
using Matrix = std::array<Coefficients, kMost>;
using Chosen = std::array<bool, kMost>;  // coefficients that are fitted; the others are 0

// A measured value; both divided by the size of its error, up to a factor common to all rows.
struct Row {
  Coefficients terms;
  double target;
};

struct Fit {
  Chosen chosen = {};
  int degrees = 0;         // of freedom
  double error = 0;        // standard deviation of a row's target
  Coefficients best = {};  // least squares
  Matrix spread = {};      // lower triangle: best + spread z has their covariance, for normal z
  Matrix gram = {};        // A'A
};

double dot(const Coefficients& a, const Coefficients& b);

Chosen first(size_t count);

// Whether no term of the chosen ones follows from the others.
bool is_determined(const std::vector<Row>& rows, const Chosen& chosen);

// More rows than coefficients, which are determined. The error is that of the residuals.
Fit fit(const std::vector<Row>& rows, const Chosen& chosen);

// What is known of the error from elsewhere takes the place of the residuals.
void set_error(Fit& fit, double error, int degrees);

// The coefficients may also be off by `step`, times a normal number, for reasons of its own.
void add_error(Fit& fit, const Coefficients& step);

// The coefficients nearest to c, in the metric of the fit, of which none from first_bounded on is below 0.
Coefficients nearest_bounded(const Fit& fit, const Coefficients& c, size_t first_bounded);

// What a repetition would draw: normal errors, and by what factor the size of the errors is off, which is
// known as badly as the degrees of freedom say.
struct Draw {
  Coefficients normal;
  double size;
};
class Draws {
 public:
  explicit Draws(int degrees) : degrees_(degrees), half_chi_squared_(degrees / 2.0) {}
  Draw next(std::mt19937_64& random);

 private:
  int degrees_;
  std::normal_distribution<double> normal_;
  std::gamma_distribution<double> half_chi_squared_;
};
// How far from the best the coefficients of such a repetition would be.
Coefficients step(const Fit& fit, const Draw& draw);

// A coefficient with its 95 % interval by Student's t.
Estimate estimate(const Fit& fit, size_t index);

// What a time is off a curve by, relative, at 68 % and up to a common factor: launches differ by some percent
// beyond what the steps of one launch show.
double relative_error(const Estimate& time);

}  // namespace shardmark::least_squares
