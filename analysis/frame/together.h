// What a collective and a load (a matrix product, a copy, a block, another collective) cost each other, from
// the rounds of a point that measured each alone and both at once (src/sweep/workloads/together.cpp).
#pragma once

#include <algorithm>
#include <optional>

#include "analysis/frame/estimate.h"
#include "analysis/frame/merged.h"

namespace shardmark {

// Ratios are medians over rounds, with 95 % intervals; of several launches the hull of theirs. In a round a
// time is that of the slowest rank.
struct Together {
  double load_s = 0, collective_s = 0;  // alone, of a round
  double together_s = 0;                // until the later one has ended
  // together / the longer one alone: 1 where that hides the other, no_overlap where one runs after the other.
  Estimate ratio;
  double no_overlap = 0;  // the sum of both alone / the longer one
  double hidden = 0;      // (sum - together) / the shorter one alone; below 0 where they disturb each other
  // NaN where it is far above all of it: then times varied too much to say.
  double credible_hidden() const { return hidden > 1.1 ? Measures::kNone : std::min(hidden, 1.0); }
  Estimate of_sum;  // together / the sum of both alone; above 1 overlapping loses
  // Its time while the other runs / alone. Beside a longer one it would only say how much longer that was
  // made: people see it where both are about equally long.
  double load_slowdown = 0, collective_slowdown = 0;
  bool is_alike() const { return no_overlap > 1.75; }  // the shorter one is at least 75 % of the longer one
  // Seconds of communication that get done in a second of the load: what `progress` of a simulated step is.
  double progress() const { return std::clamp(hidden, 0.0, 1.0); }
};

inline bool is_together(const MergedPoint& merged) {
  return merged.point.workload == "collective" && merged.point.collective.beside != "alone";
}

// Returns nothing for other points, and for points without samples.
std::optional<Together> together_of(const MergedPoint& merged);

}  // namespace shardmark
