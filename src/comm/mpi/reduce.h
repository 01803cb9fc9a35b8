// Reduces contributions that lie in this rank's memory. They are added in rank order, and 16-bit types are
// accumulated in float. So a result depends neither on which rank computed it nor on how a tensor was
// divided.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "comm/communicator.h"

namespace shardmark {

// out[i] = sources[0][i] op sources[1][i] op ... For an average the sum is divided by `num_averaged`. `out`
// may be one of the sources.
void reduce_sources(void* out, const std::vector<const void*>& sources, int64_t numel, at::ScalarType dtype,
                    ReduceOp op, int num_averaged);

}  // namespace shardmark
