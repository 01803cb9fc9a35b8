// What a mixture of experts has beside a Llama's shape.
#pragma once

#include "schema/choice.h"

namespace shardmark::specs {

struct MoeShape {
  int64_t experts, top_k, shared_inner;
  double aux_loss;
};

// Of resolved options. UsageError: more chosen experts than there are.
MoeShape moe_shape(const Options& options);

}  // namespace shardmark::specs
