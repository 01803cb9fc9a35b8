// Memory of activations, by the rows of the model's table: the prediction beside what ranks measure.
#pragma once

#include "strategies/strategy.h"

namespace shardmark::strategies {

// The most that a rank holds in a step beside the memory of its program, in bytes: what forward keeps for
// backward (Korthikanti et al., MLSys 2023, section 4, count it by layer), or only the inputs of blocks that
// are computed again (Chen et al. 2016), with what the backward of one block needs meanwhile: gradients of
// its activations, and of a parameter before it is added to the others.
//
// Pipelines: a block whose output was sent to the next stage keeps it only where its backward needs it.
// Between the two parts of a backward stay inputs of products and the gradients of their outputs, and
// gradients of parameters whose layers do not split, such as convolutions (models/split_backward.h).
//
// Documents: where attention stays inside them, the micro-batch's mask is held, one for all blocks
// (models/attention.h).
//
// Logits: in bf16 the loss keeps probabilities in bf16 and its backward needs nothing more
// (models/cross_entropy.h); otherwise it keeps log-probabilities in fp32 or wider, and its backward two
// gradients of that size. Over tensor-parallel ranks it keeps its words' logits in fp32 or wider, and beside
// them either their exponentials and what they were converted from (forward), or one gradient (backward)
// (models/parallel.cpp).
double activation_bytes(const StepInput& input, double batch);

// The largest batch whose activations fit into so many bytes, beside the memory of the program; 0: none.
int64_t largest_batch(const StepInput& input, double bytes);

}  // namespace shardmark::strategies
