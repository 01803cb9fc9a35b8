// Initial values that depend on (seed, parameter name) alone: any number of ranks, any sharding starts from
// the same model.
#pragma once

#include <ATen/ATen.h>

#include "specs/model_table.h"

namespace shardmark {

// The parameter on the CPU, [spec.shape], drawn as a whole and in float32 for every dtype alike.
at::Tensor initial_value(const specs::ParameterSpec& spec, int64_t seed, at::ScalarType dtype);

}  // namespace shardmark
