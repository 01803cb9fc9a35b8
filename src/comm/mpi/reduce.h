// Reduction of contributions that lie in this rank's memory, in rank order and with a float accumulator for
// 16-bit types: a result depends neither on which rank computed it nor on how a tensor was cut.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "comm/communicator.h"

namespace shardmark {

// out[i] = sources[0][i] op sources[1][i] op ...; an average divides the sum by `num_averaged`. out may be a
// source.
void reduce_sources(void* out, const std::vector<const void*>& sources, int64_t numel, at::ScalarType dtype,
                    ReduceOp op, int num_averaged);

}  // namespace shardmark
