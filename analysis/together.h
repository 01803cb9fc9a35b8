// What a collective and a load (a matrix product, a copy, a block, another collective) cost each other, from
// the rounds of a point that measured each alone and both at once (src/sweep/workloads/together.cpp).
#pragma once

#include <optional>

#include "analysis/merged.h"
#include "analysis/scaling/estimate.h"

namespace shardmark {

// Ratios with 95 % intervals: of the median over rounds, of several launches the hull of theirs. In a round a
// time is that of the slowest rank.
struct Together {
  double load_s = 0, collective_s = 0;  // alone, of a round: repeated until both are about as long
  Estimate load, collective;            // slow-down: its time while the other runs / alone
  Estimate gain;                        // one after the other / at once; below 1 overlapping loses
  // Seconds of communication that get done in a second of the load: what `progress` of a simulated step is.
  double progress = 0;
};

inline bool is_together(const MergedPoint& merged) {
  return merged.point.workload == "collective" && merged.point.collective.beside != "alone";
}

// Nothing of other points, or without samples.
std::optional<Together> together_of(const MergedPoint& merged);

}  // namespace shardmark
