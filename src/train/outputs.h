// Checks what a run is going to write before it computes anything.
#pragma once

#include "train/run.h"

namespace shardmark {

// Call this on the rank that writes. first_step is that of this launch. Throws UsageError if a place cannot
// be written, or if a disk has no room for the checkpoints and weights of the run, as far as the system
// reports it.
void check_outputs(const TrainingOptions& options, int64_t first_step);

}  // namespace shardmark
