// The curves behind the laws of scaling: linear in up to four coefficients, fitted by weighted least
// squares, with bootstrap draws of the coefficients. For the files of fit.h alone.
#pragma once

#include "analysis/stats/fit.h"

namespace shardmark::scaling_curve {

using least_squares::Chosen;
using least_squares::Coefficients;

// Places of the coefficients. Divided by the first, the others are: s or alpha; beta; delta.
enum : size_t { kAtOne, kSerial, kPairwise, kBeyond };
Chosen coefficients(const ScalingForm& form);

// What a law is linear in, at a count of units. Amdahl and USL:
// cost(n) = c0 (1 + s (n-1) + beta n (n-1) + delta max(n-node, 0)), the device time of a unit of work;
// Gustafson: 1 / cost(n) = c0 (1 - s (1 - 1/n) - delta max(1 - node/n, 0)).
Coefficients terms(const ScalingForm& form, double units);
double cost(const ScalingForm& form, const Coefficients& c,
            double units);  // NaN where the curve is not above 0
double step_s(const ScalingForm& form, const Coefficients& c, double units);
double units_at_cost(const ScalingForm& form, const Coefficients& c,
                     double cost);                                     // infinite where it is never reached
double units_at_peak(const ScalingForm& form, const Coefficients& c);  // of USL's throughput

// Least squares of relative residuals. A residual counts less where the step's own interval is wide.
ScalingFit::Curve fit(const ScalingForm& form, const std::vector<TimedCount>& times, const Chosen& chosen);

// How far each time's response is off the curve, relative.
std::vector<Residual> residuals(const ScalingForm& form, const std::vector<TimedCount>& times,
                                const Coefficients& c);

// The curve at a count, with the error of a mean of launches, whose relative standard deviation is `error`.
Estimate predicted_step_s(const ScalingForm& form, const ScalingFit::Curve& curve, double units,
                          double error);

// Bootstrap: coefficients as repetitions of the study would give them; the same for the same curve.
// Parameters below 0 are among them: an interval is then cut, not bent.
std::vector<Coefficients> draws(const ScalingFit::Curve& curve);

// The coefficients nearest to c, in the metric of the fit, with no parameter below 0.
Coefficients constrained(const ScalingFit::Curve& curve, const Coefficients& c);

// The value with the 2.5 and 97.5 % percentiles of its draws, widened to hold the value; a NaN among them
// counts as infinite.
Estimate estimate(double value, std::vector<double> drawn);

}  // namespace shardmark::scaling_curve
