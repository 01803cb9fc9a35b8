// Experts that ranks share (expert parallelism): the copies of tokens travel to the ranks that have their
// experts, and the experts' outputs travel back. No token is dropped, and nothing is padded: ranks first tell
// each other how many copies they send. Sources: Lepikhin et al. 2020, GShard, section 3.2; Megatron-LM's
// all-to-all dispatcher, which has no capacity either.
#pragma once

#include "models/experts.h"

namespace shardmark {

// Like experts(), where w1, w3 and w2 are those of the experts that this rank has, and `routing` is over
// those of all ranks. counts: int64 [experts], how many of this rank's copies go to each. With one rank it is
// experts().
at::Tensor experts_over_ranks(const at::Tensor& x, const at::Tensor& w1, const at::Tensor& w3,
                              const at::Tensor& w2, const Routing& routing, const at::Tensor& counts,
                              const Model& model);

}  // namespace shardmark
