// The size of a training point's saved state by formula: of the tensors in the files of a checkpoint, without
// headers and single numbers.
#pragma once

#include "schema/point.h"

namespace shardmark::strategies {

// The whole state in one file: every parameter and the optimizer's state of it once, in the master type, the
// model's buffers, and what a reduction carries from step to step.
int64_t whole_state_bytes(const Point& point);

// The files of all ranks, each with what its rank owns. Ranks that hold the same values share them out. It is
// larger than the whole state by the padding of shards, by parameters that several ranks need whole (of layer
// norms under tensor parallelism, of tied groups in a pipeline), and by each rank's own buffers.
int64_t sharded_state_bytes(const Point& point);

}  // namespace shardmark::strategies
