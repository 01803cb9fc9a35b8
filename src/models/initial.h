// Initial values that depend on (seed, parameter name) alone: any number of ranks, any sharding starts from
// the same model.
#pragma once

#include <ATen/ATen.h>

#include "laws/model_table.h"

namespace shardmark {

// The whole parameter on the CPU, [spec.shape], drawn in float64's generator order for fp32 and fp64 alike.
at::Tensor initial_value(const laws::ParameterSpec& spec, int64_t seed, at::ScalarType dtype);

}  // namespace shardmark
