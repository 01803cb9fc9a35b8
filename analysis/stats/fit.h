// Laws of scaling fitted to measured step times, each parameter with a 95 % interval; or the reason why a law
// is not fitted. Definitions, sources and measured coverage: analysis/README.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/frame/estimate.h"
#include "analysis/stats/lack_of_fit.h"
#include "analysis/stats/least_squares.h"

namespace shardmark {

// weak: the batch per rank stays the same; strong: the global batch does.
enum class Scaling { weak, strong };

// Amdahl and USL: throughput X(n) = X(1) n / (1 + s (n-1)), and with + beta n (n-1) below the line.
// Gustafson: X(n) = X(1) (s + (1-s) n).
enum class ScalingLaw { amdahl, gustafson, usl };
std::string_view to_text(ScalingLaw law);  // "Amdahl", "Gustafson", "USL"

// Two levels: of n > node ranks, each of the n - node beyond one node costs delta more. Amdahl and USL have
// + delta (n - node) below the line, Gustafson - delta (n - node).
struct ScalingForm {
  ScalingLaw law = ScalingLaw::amdahl;
  Scaling scaling = Scaling::strong;
  double node = 0;  // units on a full node; 0: one level
};
std::string to_text(const ScalingForm& form);  // "Amdahl", "Amdahl, 2 levels"

// A step time as one launch measured it; units are ranks, or whole nodes.
struct TimedCount {
  double units;
  Estimate step_s;
};

struct FittedParameter {
  std::string symbol;  // s; alpha and beta of USL; delta
  Estimate estimate;   // 0 without an interval: the data say that it could only be below, so it is held at 0
};

// The largest count as a fit of the others predicts it: its mean step time, and where that should lie. NaN
// where the others have no fit.
struct Extrapolation {
  double measured_s = Measures::kNone;
  Estimate predicted_s;
};

struct ScalingFit : ScalingForm {
  ScalingFit() = default;
  explicit ScalingFit(const ScalingForm& form) : ScalingForm(form) {}

  std::string refused;          // why there is no fit; empty when there is
  std::vector<double> further;  // counts of which any would settle it, or could contradict an untested fit
  std::vector<FittedParameter> parameters;  // empty when refused
  Estimate limit;                           // the largest speed-up, 1 / (s + delta), of Amdahl
  Estimate peak;  // the units with the largest throughput, of USL; infinite where it never falls
  double deviation = Measures::kNone;  // largest |measured / fitted - 1| of a count's mean step time
  Extrapolation held_out;
  LackOfFit lack;
  bool from_launches = false;  // the error is that between launches; else that of the counts around the curve
  double launch_error = 0;     // standard deviation of a launch's step time, relative

  using Curve = least_squares::Fit;
  Curve curve;  // which is linear in its coefficients; see curve.h
};

// A count has as many times as launches measured it; in any order. Those that are not above 0 are passed
// over.
ScalingFit fit_scaling(const ScalingForm& form, const std::vector<TimedCount>& times);

// The units at which efficiency against base_units has fallen to a value, with a 95 % interval; infinite
// where it never does. The fit must not have been refused.
Estimate fitted_crossing(const ScalingFit& fit, double base_units, double efficiency);
double fitted_speed_up(const ScalingFit& fit, double units);  // over one unit

// Where the mean step time of this many further launches will lie.
Estimate predicted_step_s(const ScalingFit& fit, double units, size_t launches);

// The form fitted without the largest count: what it then says of it.
Extrapolation hold_out_largest(const ScalingForm& form, const std::vector<TimedCount>& times);

}  // namespace shardmark
