// The bubble of a pipeline: what stages wait for each other by the schedule alone. What they wait beyond it
// is for messages, and for micro-batches that take longer than others.
#pragma once

#include "analysis/frame/merged.h"

namespace shardmark {

// Seconds of a step that its slowest rank waits by the schedule, with stages that compute as long as they did
// in the timed steps and messages that take no time; the median over the repeats. A NaN without a pipeline,
// or where the study lacks the times of the blocks.
double bubble_s(const MergedPoint& merged);

}  // namespace shardmark
