// The curves behind the laws of scaling: linear in up to three coefficients, fitted by weighted least
// squares, with bootstrap draws of the coefficients. For scaling_fit.cpp alone.
#pragma once

#include "analysis/scaling_fit.h"

namespace shardmark::scaling_curve {

using least_squares::Coefficients;

// What a law is linear in, at a count of units. Amdahl and USL: cost(n) = c0 (1 + s (n-1) + beta n (n-1)),
// the device time of a unit of work; Gustafson: 1 / cost(n) = c0 (1 - s (1 - 1/n)).
Coefficients terms(ScalingLaw law, double units);
size_t num_coefficients(ScalingLaw law);
double response(ScalingLaw law, Scaling scaling, double units, double step_s);
double cost(ScalingLaw law, const Coefficients& c, double units);  // NaN where the curve is not above 0
double step_s(const ScalingFit& fit, const Coefficients& c, double units);
double units_at_cost(ScalingLaw law, const Coefficients& c,
                     double cost);  // infinite where it is never reached

// Least squares of relative residuals. A residual counts less where the step's own interval is wide.
// Coefficients from num_coefficients on stay 0.
ScalingFit::Curve fit(ScalingLaw law, Scaling scaling, const std::vector<TimedCount>& times,
                      size_t num_coefficients);

// Bootstrap: coefficients as repetitions of the study would give them; the same for the same curve.
// Parameters below 0 are among them: an interval is then cut, not bent.
std::vector<Coefficients> draws(const ScalingFit::Curve& curve);

// The coefficients nearest to c, in the metric of the fit, with no parameter below 0.
Coefficients constrained(const ScalingFit::Curve& curve, const Coefficients& c);

// The value with the 2.5 and 97.5 % percentiles of its draws, widened to hold the value; a NaN among them
// counts as infinite.
Estimate estimate(double value, std::vector<double> drawn);

}  // namespace shardmark::scaling_curve
