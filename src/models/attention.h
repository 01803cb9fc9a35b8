// Causal attention, over samples that are one text or are packed of documents, of ranks that have all of a
// sequence or a part of it.
#pragma once

#include "models/parallel.h"

namespace shardmark {

// What attention adds to its scores, [B or 1, 1, T, keys]: 0 where a token may look, at itself and what is
// before it in its document; otherwise -inf. In the type of the scores, so that all layers share it: of a
// mask of booleans each would keep such a copy. tokens: the queries' places in the sample [T], among `keys`;
// positions: in their documents [B or 1, T].
at::Tensor attention_mask(const at::Tensor& tokens, const at::Tensor& positions, int64_t keys,
                          at::ScalarType dtype);

// Of queries [B, T, H, D] over keys and values of as many heads, or of fewer that divide them: [B, T, H, D].
// dropout: of the scores.
at::Tensor causal_attention(const Model& model, const at::Tensor& queries, const at::Tensor& keys,
                            const at::Tensor& values, const Batch& batch, double dropout = 0);

}  // namespace shardmark
