// Initial values depend only on the seed and the parameter's name, so that any number of ranks with any
// sharding starts from the same model.
#pragma once

#include <ATen/ATen.h>

#include "specs/model_table.h"

namespace shardmark {

// The parameter on the CPU, [spec.shape]. It is drawn as a whole and in float32, whatever the dtype, and then
// sharded.
at::Tensor initial_value(const specs::ParameterSpec& spec, int64_t seed, at::ScalarType dtype);

}  // namespace shardmark
