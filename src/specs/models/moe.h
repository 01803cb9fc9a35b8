// The shape of a mixture of experts, in addition to a Llama's.
#pragma once

#include "schema/choice.h"

namespace shardmark::specs {

struct MoeShape {
  int64_t experts, top_k, shared_inner;
  double aux_loss;
};

// Reads the shape from resolved options. Throws UsageError if top_k is larger than the number of experts.
MoeShape moe_shape(const Options& options);

}  // namespace shardmark::specs
