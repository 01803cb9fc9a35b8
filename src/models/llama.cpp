// llama and its sizes: embedding, transformer blocks, head. Between blocks the residual stream is [B T, C].
// B: batch, T: tokens, H: heads of queries, K: heads of keys and values, D: channels per head, C = H D:
// width, V: vocabulary.
#include "models/llama.h"

#include <torch/csrc/autograd/custom_function.h>

#include <numbers>

#include "models/attention.h"
#include "models/layers.h"
#include "models/model.h"

namespace shardmark {
namespace {

// The layers other than linear ones are autograd functions, each of which keeps for its backward only what
// cannot be recomputed in one pass.

// x weight / sqrt(mean(x^2) + eps) over the last dimension. It keeps x and one number per row, and computes
// 16-bit types in float.
struct RmsNorm {
  const Model& model;
  const at::Tensor& weight;
  at::Tensor operator()(const at::Tensor& x) const { return of_sum(x, {}).second; }
  // Returns h = x + added (or x if `added` is undefined), and its norm.
  std::pair<at::Tensor, at::Tensor> of_sum(const at::Tensor& x, const at::Tensor& added) const;
};

// Rotary position embedding (Su et al. 2021) in Hugging Face's layout: channels i and i + D/2 of a head are a
// pair, which position t rotates by the angle t theta^(-2i/D). Angles are computed in float for every type,
// as Llama was trained.
struct Rotary {
  at::Tensor cos, sin;  // [T, 1, D/2]

  // `factor` is that of Llama 3's frequency scaling. It divides the frequencies whose wavelength is above the
  // 8192 tokens of the original training, keeps those below a quarter of that, and interpolates in between;
  // 1: no scaling.
  Rotary(int64_t positions, int64_t head_width, double theta, double factor, at::TensorOptions options);
  // x is [B, T, H, D]. `positions` are those of its tokens, [B, T]; undefined: 0, 1, 2 ...
  at::Tensor operator()(const Model& model, const at::Tensor& x, const at::Tensor& positions) const;
};

constexpr double kRmsEpsilon = 1e-5;  // Llama 3's

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor precise(const at::Tensor& x) { return x.element_size() < 4 ? x.to(at::kFloat) : x; }

// With s = 1 / sqrt(mean(x^2) + eps), n = x s and y = n w. Backward, with a = dy w: dx = s (a - n mean(a
// n)), and dw is the sum of dy n over rows.
struct RmsNormFunction : torch::autograd::Function<RmsNormFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight) {
    const at::Tensor wide = precise(x);
    const at::Tensor scale = wide.square().mean(-1, /*keepdim=*/true).add_(kRmsEpsilon).rsqrt_();
    ctx->save_for_backward({x, weight, scale});
    return at::mul(wide, scale).mul_(weight).to(x.scalar_type());
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& outputs) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &scale = saved[2];
    const at::Tensor dy = precise(outputs[0]), normed = at::mul(precise(x), scale);
    const at::Tensor dweight = at::mul(dy, normed).sum(0);
    const at::Tensor dnormed = at::mul(dy, weight);
    const at::Tensor mean = at::mul(dnormed, normed).mean(-1, /*keepdim=*/true);
    const at::Tensor dx = dnormed.addcmul_(normed, mean, -1).mul_(scale);
    return {dx.to(x.scalar_type()), dweight.to(weight.scalar_type())};
  }
};

struct SwigluFunction : torch::autograd::Function<SwigluFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& gate, const at::Tensor& up) {
    ctx->save_for_backward({gate, up});
    return at::silu(gate).mul_(up);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& outputs) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &gate = saved[0], &up = saved[1], &dy = outputs[0];
    return {at::silu_backward(at::mul(dy, up), gate), at::silu(gate).mul_(dy)};
  }
};

// Rotates the pairs of x, forward (direction 1) or back (-1). `saved` has cos, sin and positions. The pair
// (a, b) becomes (a cos - b sin, b cos + a sin). A rotation's transpose is the rotation back, so that
// backward turns the gradient the other way.
at::Tensor turned(const at::Tensor& x, const variable_list& saved, double direction) {
  const at::Tensor& positions = saved[2];
  const auto of_tokens = [&](const at::Tensor& table) {
    return positions.defined() ? table.index({positions}) : table.narrow(0, 0, x.size(1));
  };
  const at::Tensor cos = of_tokens(saved[0]), sin = of_tokens(saved[1]);
  const int64_t half = x.size(-1) / 2;
  const at::Tensor a = x.narrow(-1, 0, half), b = x.narrow(-1, half, half);
  at::Tensor y = at::empty(x.sizes(), x.options());
  at::Tensor first = y.narrow(-1, 0, half), second = y.narrow(-1, half, half);
  at::mul_out(first, a, cos).addcmul_(b, sin, -direction);
  at::mul_out(second, b, cos).addcmul_(a, sin, direction);
  return y;
}

struct RotaryFunction : torch::autograd::Function<RotaryFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& cos,
                            const at::Tensor& sin, const std::optional<at::Tensor>& positions) {
    const variable_list tables = {cos, sin, positions.value_or(at::Tensor())};
    ctx->save_for_backward(tables);
    return turned(x, tables, 1);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& outputs) {
    return {turned(outputs[0], ctx->get_saved_variables(), -1), {}, {}, {}};
  }
};

// The frequency of each pair of channels, in float. Source: transformers, modeling_rope_utils.py,
// _compute_llama3_parameters.
at::Tensor frequencies(int64_t head_width, double theta, double factor) {
  constexpr double kTrained = 8192, kLow = 1, kHigh = 4;
  const at::Tensor exponent = at::arange(0, head_width, 2, at::kFloat) / static_cast<double>(head_width);
  at::Tensor plain = at::pow(theta, exponent).reciprocal_();
  if (factor == 1) return plain;
  const at::Tensor wavelength = 2 * std::numbers::pi / plain, scaled = plain / factor;
  const at::Tensor share = (kTrained / wavelength - kLow) / (kHigh - kLow);
  const at::Tensor between = (1 - share) * plain / factor + share * plain;
  return at::where(wavelength > kTrained / kLow, scaled,
                   at::where(wavelength < kTrained / kHigh, plain, between));
}

std::pair<at::Tensor, at::Tensor> RmsNorm::of_sum(const at::Tensor& x, const at::Tensor& added) const {
  if (model.fused) return fused_rms_norm(model.fused, x, added, weight, kRmsEpsilon);
  const at::Tensor h = added.defined() ? x + added : x;
  return {h, model.gpu_forms ? at::rms_norm(h, weight.sizes(), weight, kRmsEpsilon)
                             : RmsNormFunction::apply(h, weight)};
}

// silu(gate) up. It keeps both inputs.
at::Tensor swiglu(const Model& model, const at::Tensor& gate, const at::Tensor& up) {
  return model.fused ? fused_swiglu(model.fused, gate, up) : SwigluFunction::apply(gate, up);
}

Rotary::Rotary(int64_t positions, int64_t head_width, double theta, double factor,
               at::TensorOptions options) {
  const at::Tensor angles =
      at::outer(at::arange(positions, at::kFloat), frequencies(head_width, theta, factor)).unsqueeze(1);
  cos = angles.cos().to(options);
  sin = angles.sin().to(options);
}

at::Tensor Rotary::operator()(const Model& model, const at::Tensor& x, const at::Tensor& positions) const {
  if (model.fused) return fused_rotary(model.fused, x, cos, sin, positions);
  return RotaryFunction::apply(x, cos, sin, positions.defined() ? std::optional(positions) : std::nullopt);
}

struct GroupedAttention {
  Matrix q, k, v, out;
  Rotary rotary;
  int64_t head_width;
  const Model& model;

  at::Tensor operator()(const LayerInput& in, const Batch& batch) const {
    const auto by_head = [&](const Matrix& matrix) {  // [B, T, H or K, D]
      return matrix(in).view({batch.inputs.size(0), batch.inputs.size(1), -1, head_width});
    };
    const at::Tensor queries = rotary(model, by_head(q), batch.positions);
    const at::Tensor keys = rotary(model, by_head(k), batch.positions);
    const at::Tensor y = causal_attention(model, queries, keys, by_head(v), batch);
    return reduce_from_tensor_region(model, out(y.reshape({in.x.size(0), -1})));
  }
};

Block transformer(Model& model, const std::string& name, const Rotary& rotary, int64_t head_width,
                  const Mlp& mlp) {
  const auto norm = [&](const char* of) {
    return RmsNorm{model, model.parameter(name + "." + of + ".weight")};
  };
  const auto matrix = [&](const char* of) {
    return Matrix{model.parameter(name + "." + of + ".weight"), model, /*is_in_block=*/true};
  };
  const RmsNorm before_attention = norm("input_layernorm"), before_mlp = norm("post_attention_layernorm");
  const GroupedAttention attention{matrix("self_attn.q_proj"),
                                   matrix("self_attn.k_proj"),
                                   matrix("self_attn.v_proj"),
                                   matrix("self_attn.o_proj"),
                                   rotary,
                                   head_width,
                                   model};
  return {name, [=, &model](const at::Tensor& x, const Batch& batch) {
            const auto [in, for_attention] = before_attention.of_sum(x, {});
            const at::Tensor attended = attention(copy_to_tensor_region(model, for_attention), batch);
            const auto [h, for_mlp] = before_mlp.of_sum(in, attended);
            return h + mlp(for_mlp);
          }};
}

}  // namespace

InnerMlp swiglu_mlp(Model& model, const std::string& name) {
  const auto matrix = [&](const char* of) {
    return Matrix{model.parameter(name + "." + of + ".weight"), model, /*is_in_block=*/true};
  };
  return [&model, gate = matrix("gate_proj"), up = matrix("up_proj"),
          down = matrix("down_proj")](const LayerInput& in) { return down(swiglu(model, gate(in), up(in))); };
}

void add_llama_blocks(Model& model, const specs::LlamaShape& shape,
                      const std::function<Mlp(const std::string&)>& mlp) {
  const at::Tensor& tokens = model.parameter("model.embed_tokens.weight");  // [V, C]
  const Rotary rotary(shape.sequence, shape.head_width(), shape.rope_theta, shape.rope_factor,
                      at::TensorOptions(model.device()).dtype(model.dtype()));
  if (!shape.tied)
    model.add_block({"embedding", [&model, &tokens](const at::Tensor& ids, const Batch&) {
                       return embedded(model, tokens, ids);
                     }});
  for (int64_t i = 0; i < shape.layers; ++i) {
    const std::string name = "model.layers." + std::to_string(i);
    Block block = transformer(model, name, rotary, shape.head_width(), mlp(name));
    if (shape.tied && i == 0)
      block.forward = [&model, &tokens, layer = std::move(block.forward)](const at::Tensor& ids,
                                                                          const Batch& batch) {
        return layer(embedded(model, tokens, ids), batch);
      };
    model.add_block(std::move(block));
  }
  const RmsNorm norm{model, model.parameter("model.norm.weight")};
  const at::Tensor& head = shape.tied ? tokens : model.parameter("lm_head.weight");
  model.add_block({"head", [&model, norm, &head](const at::Tensor& x, const Batch& batch) {
                     return language_head(model, norm(x), head, batch);
                   }});
}

namespace {

void add_blocks(Model& model, const Options& options) {
  add_llama_blocks(model, specs::llama_shape(options), [&](const std::string& layer) -> Mlp {
    return [&model, swiglu = swiglu_mlp(model, layer + ".mlp")](const at::Tensor& x) {
      return reduce_from_tensor_region(model, swiglu(copy_to_tensor_region(model, x)));
    };
  });
}

const ModelEntry kLlama{"transformer blocks with rotary embedding, grouped-query attention and SwiGLU",
                        add_blocks};
const Registration<ModelEntry> llama_entry{"llama", kLlama};
const Registration<ModelEntry> llama_1b{"llama_1b", kLlama};
const Registration<ModelEntry> llama_3b{"llama_3b", kLlama};
const Registration<ModelEntry> llama_8b{"llama_8b", kLlama};
const Registration<ModelEntry> llama_70b{"llama_70b", kLlama};

}  // namespace

}  // namespace shardmark
