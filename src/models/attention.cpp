// Calls ATen's attention once, or once for each of the two parts of a sequence that a context-parallel rank
// has.
#include "models/attention.h"

#include <limits>

#include "base/hash.h"
#include "device/device.h"

namespace shardmark {
namespace {

// Repeats heads of keys or values where ATen's kernel does not share them among heads of queries: in fp32 and
// fp64 on a GPU.
at::Tensor shared(const Model& model, const at::Tensor& x, int64_t heads) {
  const bool repeats = model.gpu_forms && !at::isReducedFloatingType(model.dtype()) && x.size(2) != heads;
  return repeats ? x.repeat_interleave(heads / x.size(2), 2) : x;
}

// All tensors are [B, heads, T, D].
at::Tensor attention(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                     const at::Tensor& mask, double dropout) {
  return at::scaled_dot_product_attention(
      queries, keys, values, mask.defined() ? std::optional(mask) : std::nullopt, dropout,
      /*is_causal=*/!mask.defined(), /*scale=*/{}, /*enable_gqa=*/keys.size(1) != queries.size(1));
}

// Attention of the two parts of a sequence that a context-parallel rank has. The causal mask hides all keys
// behind the part, so that each part only gets the keys up to its own end.
at::Tensor attention_of_parts(const specs::Split& split, const at::Tensor& queries, const at::Tensor& keys,
                              const at::Tensor& values, const at::Tensor& mask, double dropout) {
  const int64_t part = queries.size(2) / 2;
  std::vector<at::Tensor> parts;
  for (const int64_t which : {0, 1}) {
    const int64_t number = which == 0 ? split.context_index : 2 * split.context - 1 - split.context_index;
    const int64_t seen = (number + 1) * part;
    const auto of_part = [&](const at::Tensor& x) { return x.narrow(2, which * part, part); };
    parts.push_back(attention(of_part(queries), keys.narrow(2, 0, seen), values.narrow(2, 0, seen),
                              of_part(mask).narrow(3, 0, seen), dropout));
  }
  return at::cat(parts, 2);
}

// Tensor-parallel ranks have different heads and must draw different dropout masks for them. All other draws
// of the block must be the same on ranks that have all tokens.
void draw_apart(const Model& model, int64_t number) {
  seed_generator(model.device(), hash_of(model.random_key, number));
}

}  // namespace

at::Tensor attention_mask(const at::Tensor& tokens, const at::Tensor& positions, int64_t keys,
                          at::ScalarType dtype) {
  const at::Tensor key = at::arange(keys, tokens.options());
  const at::Tensor hidden =
      (key < (tokens - positions).unsqueeze(-1)).logical_or_(key > tokens.unsqueeze(-1));
  return at::zeros(hidden.sizes(), tokens.options().dtype(dtype))
      .masked_fill_(hidden, -std::numeric_limits<double>::infinity())
      .unsqueeze(1);
}

at::Tensor causal_attention(const Model& model, const at::Tensor& queries, const at::Tensor& keys,
                            const at::Tensor& values, const Batch& batch, double dropout) {
  const specs::Split& split = model.table().split;
  const bool draws_apart = dropout > 0 && split.tensor > 1 && !split.sequence_parallel;
  if (draws_apart) draw_apart(model, split.tensor_index);
  const auto [all_keys, all_values] = of_whole_sequence(model, keys, values);
  const int64_t heads = queries.size(2);
  const at::Tensor q = queries.transpose(1, 2), k = shared(model, all_keys, heads).transpose(1, 2),
                   v = shared(model, all_values, heads).transpose(1, 2);
  const at::Tensor y = split.context == 1 ? attention(q, k, v, batch.mask, dropout)
                                          : attention_of_parts(split, q, k, v, batch.mask, dropout);
  if (draws_apart) draw_apart(model, split.tensor);
  return y.transpose(1, 2);
}

}  // namespace shardmark
