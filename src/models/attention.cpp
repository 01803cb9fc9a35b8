// Calls ATen's attention once, or for each of the two parts of a sequence that a context-parallel rank has.
#include "models/attention.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/hash.h"
#include "device/device.h"

namespace shardmark {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

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

// One of the two parts of a sequence that a context-parallel rank has: where it begins among the rank's own
// tokens, and in the sample. Its tokens look at themselves and at what lies before them in the sample.
struct SequencePart {
  int64_t in_own = 0, in_sample = 0, length = 0;
};

std::array<SequencePart, 2> sequence_parts(int64_t context, int64_t index, int64_t own_tokens) {
  const int64_t length = own_tokens / 2;
  return {{{0, index * length, length}, {length, (2 * context - 1 - index) * length, length}}};
}

// With a mask, which hides more than the keys behind a token, or if there is no kernel for the other form.
at::Tensor attention_with_mask(const specs::Split& split, const at::Tensor& queries, const at::Tensor& keys,
                               const at::Tensor& values, const at::Tensor& mask, double dropout) {
  std::vector<at::Tensor> outputs;
  for (const SequencePart& part : sequence_parts(split.context, split.context_index, queries.size(2))) {
    const auto of_part = [&](const at::Tensor& x) { return x.narrow(2, part.in_own, part.length); };
    const int64_t seen = part.in_sample + part.length;
    outputs.push_back(attention(of_part(queries), keys.narrow(2, 0, seen), values.narrow(2, 0, seen),
                                of_part(mask).narrow(3, 0, seen), dropout));
  }
  return at::cat(outputs, 2);
}

// What a kernel that does not write its scores down computes of queries [B, H, T, D]: the output, and the
// log-sum-exp of each row of scores [B, H, T]. All heads of queries have keys of their own.
struct Attended {
  at::Tensor output, log_sums;
};

// The kernels of CUDA take heads whose width is a multiple of 8. Zeros beside a head change no score.
at::Tensor padded(const at::Tensor& x) {
  const int64_t rest = x.size(3) % 8;
  return !x.is_cuda() || rest == 0 ? x : at::constant_pad_nd(x, {0, 8 - rest});
}

Attended attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool is_causal, double scale) {
  if (!q.is_cuda()) {
    const auto [output, log_sums] =
        at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, /*dropout_p=*/0, is_causal, {}, scale);
    return {output, log_sums};
  }
  const auto all = at::_scaled_dot_product_flash_attention(padded(q), padded(k), padded(v), /*dropout_p=*/0.0,
                                                           is_causal, /*return_debug_mask=*/false, scale);
  return {std::get<0>(all).narrow(3, 0, q.size(3)), std::get<1>(all)};
}

// The widest heads that CUDA's kernel takes.
constexpr int64_t kMostWidth = 256;

bool has_kernel(const Model& model) {
  if (!model.device().is_cuda()) return true;
  const std::vector<std::string> native = native_precisions(model.device());
  return at::isReducedFloatingType(model.dtype()) &&
         std::find(native.begin(), native.end(), "bf16") != native.end();  // Ampere or newer
}

using Gradients = std::tuple<at::Tensor, at::Tensor, at::Tensor>;  // of queries, keys and values

// `whole` is of these keys and others together. A kernel makes its probabilities of the scores and log_sums,
// so that the gradients are those of its share of the whole.
Gradients attend_backward(const at::Tensor& gradient, const at::Tensor& q, const at::Tensor& k,
                          const at::Tensor& v, const Attended& whole, bool is_causal, double scale) {
  if (!q.is_cuda())
    return at::_scaled_dot_product_flash_attention_for_cpu_backward(
        gradient, q, k, v, whole.output, whole.log_sums, /*dropout_p=*/0, is_causal, {}, scale);
  const at::Tensor no_seed = at::zeros({}, q.options().dtype(at::kLong));
  const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_backward(
      padded(gradient), padded(q), padded(k), padded(v), padded(whole.output), whole.log_sums, {}, {},
      q.size(2), k.size(2), /*dropout_p=*/0, is_causal, no_seed, no_seed, scale);
  const auto own = [&](const at::Tensor& x) { return x.narrow(3, 0, q.size(3)); };
  return {own(dq), own(dk), own(dv)};
}

// Tokens of several heads that share keys, as more tokens of one head: [B, H, T, ...] to [B, K, H / K T,
// ...].
at::Tensor as_heads_of_keys(const at::Tensor& x, int64_t heads) {
  std::vector<int64_t> shape = x.sizes().vec();
  shape[2] *= shape[1] / heads;
  shape[1] = heads;
  return x.reshape(shape);
}

// Attention of the tokens of a context-parallel rank, without a mask: a part of its tokens sees all keys
// before the part, and its own keys causally. The two outputs are merged by their log-sum-exps. Sources:
// Milakov and Gimelshein 2018, Online normalizer calculation for softmax; Liu et al. 2023, Ring Attention.
struct AttentionOfParts : torch::autograd::Function<AttentionOfParts> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v, int64_t context, int64_t index) {
    const double scale = 1 / std::sqrt(static_cast<double>(q.size(3)));
    at::Tensor output = at::empty_like(q), log_sums;
    for (const SequencePart& part : sequence_parts(context, index, q.size(2))) {
      const auto of = [&](const at::Tensor& x) { return x.narrow(2, part.in_own, part.length); };
      Attended own = attend(of(q), own_keys(k, part, q.size(1)), own_keys(v, part, q.size(1)), true, scale);
      if (!log_sums.defined()) log_sums = at::empty(q.sizes().slice(0, 3), own.log_sums.options());
      if (part.in_sample > 0) {
        const Attended before = attend(as_heads_of_keys(of(q), k.size(1)), k.narrow(2, 0, part.in_sample),
                                       v.narrow(2, 0, part.in_sample), false, scale);
        own = merged(
            own, {before.output.reshape(own.output.sizes()), before.log_sums.reshape(own.log_sums.sizes())});
      }
      of(output).copy_(own.output);
      of(log_sums).copy_(own.log_sums);
    }
    ctx->save_for_backward({q, k, v, output, log_sums});
    ctx->saved_data["context"] = context;
    ctx->saved_data["index"] = index;
    return output;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& outputs) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &q = saved[0], &k = saved[1], &v = saved[2];
    const double scale = 1 / std::sqrt(static_cast<double>(q.size(3)));
    at::Tensor dq = at::empty_like(q), dk = at::zeros_like(k), dv = at::zeros_like(v);
    const int64_t heads = k.size(1);
    for (const SequencePart& part :
         sequence_parts(ctx->saved_data["context"].toInt(), ctx->saved_data["index"].toInt(), q.size(2))) {
      const auto of = [&](const at::Tensor& x) { return x.narrow(2, part.in_own, part.length); };
      const at::Tensor gradient = of(outputs[0]);
      const Attended whole{of(saved[3]), of(saved[4]).contiguous()};
      const auto [dq_own, dk_own, dv_own] = attend_backward(gradient, of(q), own_keys(k, part, q.size(1)),
                                                            own_keys(v, part, q.size(1)), whole, true, scale);
      of(dq).copy_(dq_own);
      add_to_own_keys(dk, dk_own, part);
      add_to_own_keys(dv, dv_own, part);
      if (part.in_sample == 0) continue;
      const auto as_keys = [&](const at::Tensor& x) { return as_heads_of_keys(x, heads); };
      const auto before = [&](const at::Tensor& x) { return x.narrow(2, 0, part.in_sample); };
      const auto [dq_before, dk_before, dv_before] =
          attend_backward(as_keys(gradient), as_keys(of(q)), before(k), before(v),
                          {as_keys(whole.output), as_keys(whole.log_sums)}, false, scale);
      of(dq).add_(dq_before.reshape(dq_own.sizes()));
      before(dk).add_(dk_before);
      before(dv).add_(dv_before);
    }
    return {dq, dk, dv, {}, {}};
  }

 private:
  // The keys, or values, of a part's own tokens, for each of the heads of queries.
  static at::Tensor own_keys(const at::Tensor& x, const SequencePart& part, int64_t heads) {
    const at::Tensor own = x.narrow(2, part.in_sample, part.length);
    return x.size(1) == heads ? own : own.repeat_interleave(heads / x.size(1), 1);
  }
  static void add_to_own_keys(const at::Tensor& gradient, const at::Tensor& of_heads,
                              const SequencePart& part) {
    gradient.narrow(2, part.in_sample, part.length)
        .add_(of_heads.unflatten(1, {gradient.size(1), -1}).sum(2));
  }
  // The softmax over two sets of keys is the mean of those over each set, weighted by the share that each
  // has of the sum of exponentials: exp(log-sum-exp of the set - that of both).
  static Attended merged(const Attended& a, const Attended& b) {
    const at::Tensor log_sums = at::logaddexp(a.log_sums, b.log_sums);
    const auto share = [&](const Attended& one) {
      return one.output * (one.log_sums - log_sums).exp_().unsqueeze(3);
    };
    return {share(a).add_(share(b)), log_sums};
  }
};

// Tensor-parallel ranks have different heads and must draw different dropout masks for them. All other draws
// of the block must be the same on ranks that have all tokens.
void draw_apart(const Model& model, int64_t number) {
  seed_generator(model.device(), hash_of(model.random_key, number));
}

}  // namespace

bool needs_mask(const Model& model, const Batch& batch) {
  if (batch.masks_documents) return true;
  return model.table().split.context > 1 && (model.has_dropout || !has_kernel(model));
}

// A token sees the keys from the first token of its document, which is its place less its position in the
// document, up to itself.
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
  // A rank needs its own keys and values no more, which may lie in one tensor with the queries.
  const at::Tensor q = (split.context == 1 ? queries : queries.contiguous()).transpose(1, 2);
  const auto of_heads = [&](const at::Tensor& x) { return shared(model, x, heads).transpose(1, 2); };
  at::Tensor mask = batch.mask;
  if (split.context > 1 && queries.is_cuda() && queries.size(3) > kMostWidth && !mask.defined()) {
    const int64_t length = all_keys.size(1);
    const at::Tensor tokens =
        own_tokens(split, at::arange(length, queries.options().dtype(at::kLong)).unsqueeze(0));
    mask = attention_mask(tokens, tokens, length, queries.scalar_type());
  }
  const at::Tensor y =
      split.context == 1 ? attention(q, of_heads(all_keys), of_heads(all_values), mask, dropout)
      : mask.defined()
          ? attention_with_mask(split, q, of_heads(all_keys), of_heads(all_values), mask, dropout)
          : AttentionOfParts::apply(q, all_keys.transpose(1, 2), all_values.transpose(1, 2), split.context,
                                    split.context_index);
  if (draws_apart) draw_apart(model, split.tensor);
  return y.transpose(1, 2);
}

}  // namespace shardmark
