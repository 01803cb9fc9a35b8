// Experts that ranks share (expert parallelism): the copies of tokens travel to the ranks that have their
// experts, and the experts' outputs travel back. Without a capacity no token is dropped, and nothing is
// padded: ranks first tell each other how many copies they send. With a capacity of C every rank sends C rows
// to each expert: its first C copies for that expert in the order of tokens, and zeros where there are fewer.
// Sources: Lepikhin et al. 2020, GShard, section 3.2; Megatron-LM's all-to-all dispatcher, which has either
// form.
#pragma once

#include "models/experts.h"

namespace shardmark {

// Like experts(), where w1, w3 and w2 are those of the experts that this rank has, and `routing` is over
// those of all ranks. counts: int64 [experts], how many of this rank's copies go to each. capacity: 0 for
// none. With one rank and without a capacity it is experts().
at::Tensor experts_over_ranks(const LayerInput& in, const at::Tensor& w1, const at::Tensor& w3,
                              const at::Tensor& w2, const Routing& routing, const at::Tensor& counts,
                              int64_t capacity, const Model& model);

}  // namespace shardmark
