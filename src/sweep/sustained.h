// A sustained run: the steps of one point go on for hours, and the memory for its results does not grow with
// the number of steps.
#pragma once

#include <functional>
#include <vector>

#include "schema/record.h"
#include "sweep/window.h"

namespace shardmark {

// Number of steps whose times are kept from the whole run, spread evenly over its intervals; and the number
// of steps of an interval, chosen at random, from which its quantiles are computed.
inline constexpr int64_t kKeptSteps = 500, kIntervalSteps = 1000;

// Receives new columns of a sustained run on rank 0 as they are measured.
using ColumnsSink = std::function<void(const std::vector<Series>& columns)>;

// To be called after the warm-up. typical_step_s counts on rank 0; 0 means unknown. Fills the series of steps
// and intervals on rank 0, and passes each interval to `sink` when it is over. Collective; all ranks return
// the same verdict.
Verdict sustain(const HostGroup& group, const Workload& workload, WindowTimer& timer, double typical_step_s,
                const ColumnsSink& sink, Record& record);

}  // namespace shardmark
