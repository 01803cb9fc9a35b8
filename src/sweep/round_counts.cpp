// Chooses the numbers of repetitions of a load and a collective so that both take about equally long.
#include "sweep/round_counts.h"

#include <algorithm>
#include <cmath>

namespace shardmark {
namespace {

// Most units that are used to reach kWantedS.
constexpr int64_t kUnits = 16;
// Wanted length of each side in seconds, unless kLeastUnits units already take longer.
constexpr double kWantedS = 0.1;
constexpr int64_t kMostOperations = 50000;  // a bound: each holds memory until its round ends
constexpr double kLeastS = 1e-9;

}  // namespace

bool are_equally_long(double load_s, double collective_s) {
  return std::abs(load_s - collective_s) < kEqualSides * std::max(load_s, collective_s);
}

// Tries all numbers of units from the least to twice that, and takes the one whose time is closest to that of
// a whole number of operations.
RoundCounts round_counts(double unit_s, double operation_s) {
  unit_s = std::max(unit_s, kLeastS);
  operation_s = std::max(operation_s, kLeastS);
  const int64_t short_units = std::clamp<int64_t>(std::llround(kWantedS / unit_s), kLeastUnits, kUnits);
  const int64_t least = std::max<int64_t>(short_units, std::llround(operation_s / unit_s));
  RoundCounts best;
  double smallest = 0;
  for (int64_t units = least; units <= 2 * least; ++units) {
    const int64_t wanted = std::llround(static_cast<double>(units) * unit_s / operation_s);
    const RoundCounts counts{units, std::clamp<int64_t>(wanted, 1, kMostOperations)};
    const double load_s = static_cast<double>(counts.units) * unit_s,
                 collective_s = static_cast<double>(counts.operations) * operation_s,
                 error = std::abs(load_s - collective_s) / std::max(load_s, collective_s);
    if (best.are_known() && error >= smallest) continue;
    best = counts;
    smallest = error;
    if (error < kEqualSides / 2) break;
  }
  return best;
}

}  // namespace shardmark
