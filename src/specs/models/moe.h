// The shape of a mixture of experts, in addition to a Llama's.
#pragma once

#include "schema/choice.h"

namespace shardmark::specs {

struct MoeShape {
  int64_t experts, top_k, shared_inner;
  double aux_loss;
  double capacity;  // of an expert, in multiples of the mean of copies; 0: as many as are sent to it
  Choice routing;   // specs/routing.h
};

// Reads the shape from resolved options. Throws UsageError if top_k is larger than the number of experts, or
// if a rule of routing gives an expert more tokens than there are.
MoeShape moe_shape(const Options& options);

// How many copies an expert takes for each sample of a micro-batch, whose samples share the sum; 0: all.
int64_t expert_capacity(const MoeShape& moe, int64_t tokens_per_sample);

}  // namespace shardmark::specs
