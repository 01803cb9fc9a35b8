// Experts that ranks share (expert parallelism): the copies of tokens travel to the ranks that have their
// experts, and the experts' outputs travel back. Without a capacity no token is dropped, and nothing is
// padded: ranks first tell each other how many copies they send. With a capacity of C every rank sends C rows
// to each expert: its first C copies for that expert in the order of tokens, and zeros where there are fewer.
// With Split::dispatch, a token travels once to each rank that has some of its experts, or once to each group
// of neighbouring ranks and from there to each rank; the receiver makes the copies, and it sums their outputs
// before these travel back. Sources: Lepikhin et al. 2020, GShard, section 3.2; Megatron-LM's all-to-all
// dispatcher, which has either of the first two forms; DeepSeek-AI 2024, DeepSeek-V3, section 3.2.2, for the
// others.
#pragma once

#include "models/experts.h"

namespace shardmark {

// Like experts(), where w1, w3 and w2 are those of the experts that this rank has, and `routing` is over
// those of all ranks. counts: int64 [experts], how many of this rank's copies go to each. capacity: 0 for
// none; with Split::dispatch there is none. With one rank and without a capacity it is experts().
at::Tensor experts_over_ranks(const LayerInput& in, const at::Tensor& w1, const at::Tensor& w3,
                              const at::Tensor& w2, const Routing& routing, const at::Tensor& counts,
                              int64_t capacity, const Model& model);

}  // namespace shardmark
