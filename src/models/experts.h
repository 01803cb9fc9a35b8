// A mixture of experts: every token goes to the top_k experts that a router chooses, and none is dropped.
#pragma once

#include "models/model.h"

namespace shardmark {

// Where N tokens go. Their N k copies are ordered by expert, so that those of an expert lie together.
struct Routing {
  at::Tensor weights;  // [N, k] of the choices of a token; they sum to 1
  at::Tensor order;    // int64 [N k]: which copy comes next; token i's are i k to i k + k - 1
  at::Tensor ends;     // int32 [E]: where the copies of each expert end
};

// Router logits [N, E]. Weights are a softmax over the chosen ones (Mixtral), computed in float of 16-bit
// types.
Routing routed(const at::Tensor& logits, int64_t top_k);

// Of tokens x [N, C]: sum over its choices of weight w2 (silu(w1 x) (w3 x)); w1 and w3 [E, I, C], w2 [E, C,
// I]. Kept for backward: x, w1 x and w3 x of every copy. model: whose backward may come in two parts, of
// which the second computes the gradients of w1, w3 and w2; nullptr: it comes in one.
at::Tensor experts(const at::Tensor& x, const at::Tensor& w1, const at::Tensor& w3, const at::Tensor& w2,
                   const Routing& routing, const Model* model = nullptr);

// a [M, K] times b [E, K, N]: rows up to ends[e] with matrix e.
at::Tensor grouped_product(const at::Tensor& a, const at::Tensor& b, const at::Tensor& ends);

}  // namespace shardmark
