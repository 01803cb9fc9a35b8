// Predicts the memory of activations from the model's table. Reports show it beside what ranks measure.
#pragma once

#include "strategies/strategy.h"

namespace shardmark::strategies {

// The most bytes that a rank holds in a step in addition to the buffers of its program: what forward keeps
// for backward (counted by layer in Korthikanti et al., MLSys 2023, section 4), or only the inputs of blocks
// that are recomputed (Chen et al. 2016), and what the backward of one block needs while it runs: gradients
// of its activations, and of one parameter before it is added to the others. `batch` is the number of samples
// of a micro-batch.
//
// Pipelines: a block whose output was sent to the next stage keeps it only if its backward needs it. Between
// the two parts of a backward, a rank keeps the inputs of matrix products, the gradients of their outputs,
// and the gradients of parameters whose layers do not split, such as convolutions (models/layers.h).
//
// Masks: if attention stays inside documents, the mask of the micro-batch is held, one for all blocks; with
// dropout, context ranks hold one for all samples (models/attention.h). The mask that they hold on a GPU in
// fp32 or fp64, or before Ampere, is not counted.
//
// Logits: in bf16 the loss keeps probabilities in bf16, and its backward needs nothing more
// (models/cross_entropy.h). Otherwise it keeps log-probabilities in fp32 or wider, and its backward needs two
// gradients of that size. With tensor parallelism it then keeps the logits of its shard of the vocabulary,
// and in addition either their exponentials and the logits that they were converted from (forward), or one
// gradient (backward) (models/parallel.cpp). What torch's kernels compute in float at a time in bf16, a
// sixteenth of the shard on a GPU, is not counted.
double activation_bytes(const StepInput& input, double batch);

// The largest batch whose activations fit into so many bytes, which the program's buffers do not take from. 0
// if none fits.
int64_t largest_batch(const StepInput& input, double bytes);

}  // namespace shardmark::strategies
