// What a run is going to write, checked before it computes anything.
#pragma once

#include "train/run.h"

namespace shardmark {

// On the rank that writes. first_step: of this launch. UsageError: a place that cannot be written, or a disk
// without room for the checkpoints and weights of the run, as far as the system tells.
void check_outputs(const TrainingOptions& options, int64_t first_step);

}  // namespace shardmark
