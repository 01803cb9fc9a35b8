// Laws of scaling fitted to measured step times, each parameter with a bootstrap interval; or the reason why
// a law is not fitted. Definitions, sources and measured coverage: analysis/README.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/estimate.h"
#include "analysis/least_squares.h"

namespace shardmark {

// weak: the batch per rank stays the same; strong: the global batch does.
enum class Scaling { weak, strong };

// Amdahl and USL: throughput X(n) = X(1) n / (1 + s (n-1)), and with + beta n (n-1) below the line.
// Gustafson: X(n) = X(1) (s + (1-s) n).
enum class ScalingLaw { amdahl, gustafson, usl };
std::string_view to_text(ScalingLaw law);  // "Amdahl", "Gustafson", "USL"

// A measured step time; units are ranks, or whole nodes.
struct TimedCount {
  double units;
  Estimate step_s;
};

struct FittedParameter {
  std::string symbol;  // s; alpha and beta of USL (beta is 0 without interval where it could only be below)
  Estimate estimate;
};

struct ScalingFit {
  ScalingLaw law = ScalingLaw::amdahl;
  Scaling scaling = Scaling::strong;
  std::string refused;                      // why there is no fit; empty when there is
  std::vector<FittedParameter> parameters;  // empty when refused
  // The largest speed-up, 1/s, of Amdahl; the units with the largest throughput, sqrt((1-alpha)/beta), of
  // USL.
  Estimate limit;
  double deviation = Measures::kNone;  // largest |measured / fitted - 1| of a step time

  using Curve = least_squares::Fit;
  Curve curve;  // which is linear in its coefficients; see scaling_curve.h
};

// Counts may be given in any order; those whose time is not above 0 are passed over.
ScalingFit fit_scaling(ScalingLaw law, Scaling scaling, const std::vector<TimedCount>& times);

// Of a fit that was not refused, each with its 95 % interval: the step time; efficiency against base_units;
// the units at which efficiency has fallen to a value, infinite where it never does.
Estimate fitted_step_s(const ScalingFit& fit, double units);
Estimate fitted_efficiency(const ScalingFit& fit, double base_units, double units);
Estimate fitted_crossing(const ScalingFit& fit, double base_units, double efficiency);

}  // namespace shardmark
