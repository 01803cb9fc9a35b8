// A sustained run: one point's steps go on for hours, and what is kept of them does not grow with their
// number.
#pragma once

#include <functional>
#include <vector>

#include "schema/record.h"
#include "sweep/window.h"

namespace shardmark {

// Steps kept of the whole run, as evenly over its intervals as can be; each interval's quantiles are those of
// at most kIntervalSteps of its steps, chosen at random.
inline constexpr int64_t kKeptSteps = 500, kIntervalSteps = 1000;

// Where the columns of a long run also go as they come, on rank 0.
using ColumnsSink = std::function<void(const std::vector<Series>& columns)>;

// After the warm-up. typical_step_s: on rank 0; 0: not known. Fills the series of steps and intervals on
// rank 0; each interval goes to `sink` when it is over. Collective, the verdict too.
Verdict sustain(const HostGroup& group, const Workload& workload, WindowTimer& timer, double typical_step_s,
                const ColumnsSink& sink, Record& record);

}  // namespace shardmark
