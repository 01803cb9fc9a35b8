// A mixture of experts: every token goes to the top_k experts that a router chooses, and none is dropped.
#pragma once

#include "models/parallel.h"

namespace shardmark {

// In which order rows that belong to tokens are added up, where tokens have different numbers of them.
struct RowsOfTokens {
  at::Tensor rows;   // int64 [rows]: in the order of their tokens
  at::Tensor begin;  // int64 [N]: where those of each token begin
};

// Where N tokens go. Their copies, k of each, are ordered by expert, so that those for one expert are
// contiguous.
struct Routing {
  at::Tensor weights;       // [N, k]: the weights of a token's choices, which sum to 1
  at::Tensor order;         // int64 [copies]: the copy at each place; token i's are i k to i k + k - 1
  at::Tensor ends;          // int32 [E]: where the copies for each expert end
  at::Tensor choices = {};  // int64 [N, k]: the expert of each choice
  // If some of a token's k columns of weights are not copies: which places have those of each token.
  RowsOfTokens of_tokens = {};
};

// Routes by router logits [N, E]. The weights are a softmax over the chosen logits (Mixtral), which 16-bit
// types compute in float.
Routing routed(const at::Tensor& logits, int64_t top_k);
// The same for choices that a rule has made: int64 [N, k], different ones for each token.
Routing routed_to(const at::Tensor& choices, const at::Tensor& logits);

// For tokens x [N, C]: the sum over a token's choices of weight w2 (silu(w1 x) (w3 x)), with w1 and w3 [E, I,
// C] and w2 [E, C, I]. Backward keeps x, and w1 x and w3 x of every copy. `model`: its backward may come in
// two parts, and the gradients of w1, w3 and w2 are then computed in the second; nullptr: backward is in one
// part. In a tensor-parallel region, those of w1 and w3 are computed while the gradient of x is summed. With
// Model::fp8, forward waits until the host knows how many tokens each expert has.
at::Tensor experts(const LayerInput& in, const at::Tensor& w1, const at::Tensor& w3, const at::Tensor& w2,
                   const Routing& routing, const Model* model = nullptr);

// Sums the rows of the k copies of each token. Rows [N k, C] are in the order by expert.
at::Tensor sum_of_copies(const at::Tensor& rows, const at::Tensor& order, int64_t top_k);
// Sums the rows of each token, where tokens have different numbers of them: [rows, C] to [N, C]. `weights`
// says what each row counts, in the order of of_tokens.rows; if it is undefined, each counts 1.
at::Tensor sum_of_rows(const at::Tensor& rows, const RowsOfTokens& of_tokens, const at::Tensor& weights = {});

// The product of a [M, K] and b [E, K, N]: the rows from ends[e - 1] to ends[e] are multiplied by matrix e.
at::Tensor grouped_product(const at::Tensor& a, const at::Tensor& b, const at::Tensor& ends);

}  // namespace shardmark
