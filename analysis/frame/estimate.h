// A number that was estimated, with its 95 % interval, and what is computed of it.
#pragma once

#include "schema/record.h"

namespace shardmark {

// NaN: not known. An end may be infinite: the data do not bound it.
struct Estimate {
  double value = Measures::kNone;
  double low = Measures::kNone;
  double high = Measures::kNone;
};

inline Estimate step_estimate(const Measures& m) { return {m.step_s, m.step_low_s, m.step_high_s}; }

inline Estimate scaled(const Estimate& e, double factor) {
  return {factor * e.value, factor * e.low, factor * e.high};
}

// The quotient of two independent estimates; its interval is the widest that the ends of theirs allow.
inline Estimate quotient(const Estimate& over, const Estimate& under) {
  return {over.value / under.value, over.low / under.high, over.high / under.low};
}

// A rate with the interval that it has from the length of the step.
inline Estimate rate_estimate(double rate, const Estimate& step_s) {
  return {rate, rate * step_s.value / step_s.high, rate * step_s.value / step_s.low};
}

}  // namespace shardmark
