// Causal attention over samples that are one text or are packed from documents, on ranks that have all of a
// sequence or a part of it.
#pragma once

#include "models/parallel.h"

namespace shardmark {

// Whether attention adds a mask to its scores. It does inside documents; and on context-parallel ranks with
// dropout, or on a GPU in fp32, fp64 or before Ampere, for which there is no kernel whose outputs can be
// merged.
bool needs_mask(const Model& model, const Batch& batch);

// The mask that attention adds to its scores, [B or 1, 1, T, keys]: 0 where a token may look, which is at
// itself and at earlier tokens of its document, and -inf elsewhere. It has the type of the scores, so that
// all layers share it; of a boolean mask each layer would keep such a copy. `tokens` are the queries'
// positions in the sample [T], among `keys`; `positions` are those in their documents [B or 1, T].
at::Tensor attention_mask(const at::Tensor& tokens, const at::Tensor& positions, int64_t keys,
                          at::ScalarType dtype);

// Attention of queries [B, T, H, D] over keys and values with as many heads, or with fewer heads that divide
// H. Returns [B, T, H, D]. `dropout` is that of the scores.
at::Tensor causal_attention(const Model& model, const at::Tensor& queries, const at::Tensor& keys,
                            const at::Tensor& values, const Batch& batch, double dropout = 0);

}  // namespace shardmark
