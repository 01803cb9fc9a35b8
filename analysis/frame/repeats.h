// What the repeats of a point are together.
#pragma once

#include "analysis/frame/merged.h"

namespace shardmark {

// Puts the records and environments that the point holds in the order in which they were measured, and sets
// all that follows from them, but for the peak, which is the machine's (peaks.h).
void combine_repeats(MergedPoint& merged);

}  // namespace shardmark
