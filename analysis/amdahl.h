// Amdahl's law, S(n) = 1 / (s + (1-s)/n), fitted to measured step times. Source: Amdahl, AFIPS 1967.
#pragma once

#include <optional>
#include <vector>

#include "schema/record.h"

namespace shardmark {

double amdahl_speedup(double serial_fraction, double ranks);

// A step time with its 95 % interval; the ends may be NaN.
struct StepTime {
  int64_t ranks;
  double step_s;
  double low_s = Measures::kNone;
  double high_s = Measures::kNone;
};

struct SerialFraction {
  double value;
  bool fitted;  // false: an estimate, the Karp-Flatt value of the most ranks; it has no interval
  double low = Measures::kNone;  // 95 % interval
  double high = Measures::kNone;
};

inline constexpr size_t kLeastFittedRankCounts = 4;  // the one rank included

// times: one per rank count, ordered, one rank first. Nothing when they do not start with one rank or hold
// nothing else.
std::optional<SerialFraction> serial_fraction(const std::vector<StepTime>& times);

}  // namespace shardmark
