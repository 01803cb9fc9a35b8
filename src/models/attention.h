// Causal attention, over samples that are one text or are packed of documents.
#pragma once

#include <limits>

#include "models/model.h"

namespace shardmark {

// What attention adds to its scores, [B, 1, T, T]: 0 where a token may look, at itself and what is before it
// in its document; otherwise -inf. In the type of the scores, so that all layers share it: of a mask of
// booleans each would keep such a copy.
inline at::Tensor document_mask(const at::Tensor& positions, at::ScalarType dtype) {
  const at::Tensor token = at::arange(positions.size(1), positions.options());
  const at::Tensor hidden =
      (token < (token - positions).unsqueeze(-1)).logical_or_(token > token.unsqueeze(-1));
  return at::zeros(hidden.sizes(), positions.options().dtype(dtype))
      .masked_fill_(hidden, -std::numeric_limits<double>::infinity())
      .unsqueeze(1);
}

// Of queries [B, H, T, D] over keys and values of as many heads, or of fewer that divide them.
inline at::Tensor causal_attention(const at::Tensor& queries, const at::Tensor& keys,
                                   const at::Tensor& values, const Batch& batch, double dropout = 0) {
  const bool has_mask = batch.mask.defined();
  return at::scaled_dot_product_attention(
      queries, keys, values, has_mask ? std::optional(batch.mask) : std::nullopt, dropout,
      /*is_causal=*/!has_mask, /*scale=*/{}, /*enable_gqa=*/keys.size(1) != queries.size(1));
}

}  // namespace shardmark
