// What reductions of the patterns give (`pattern` itself is in collectives.h).
#pragma once

#include "comm/communicator.h"

namespace shardmark {

// The reduction over ranks 0 .. num_ranks-1 of their pattern(rank, numel, dtype, round).
at::Tensor reduced_pattern(int num_ranks, int64_t numel, at::ScalarType dtype, int64_t round, ReduceOp op);

}  // namespace shardmark
