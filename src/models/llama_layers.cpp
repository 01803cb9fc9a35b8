// RMS norm, SwiGLU and rotary embedding as autograd functions.
#include "models/llama_layers.h"

#include <torch/csrc/autograd/custom_function.h>

#include <numbers>

namespace shardmark {
namespace {

constexpr double kRmsEpsilon = 1e-5;  // Llama 3's

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor precise(const at::Tensor& x) { return x.element_size() < 4 ? x.to(at::kFloat) : x; }

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

// Rotates the pairs of x, forward (direction 1) or back (-1). `saved` has cos, sin and positions.
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

}  // namespace

at::Tensor RmsNorm::operator()(const at::Tensor& x) const {
  if (model.gpu_forms) return at::rms_norm(x, weight.sizes(), weight, kRmsEpsilon);
  return RmsNormFunction::apply(x, weight);
}

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) { return SwigluFunction::apply(gate, up); }

Rotary::Rotary(int64_t positions, int64_t head_width, double theta, double factor,
               at::TensorOptions options) {
  const at::Tensor angles =
      at::outer(at::arange(positions, at::kFloat), frequencies(head_width, theta, factor)).unsqueeze(1);
  cos = angles.cos().to(options);
  sin = angles.sin().to(options);
}

at::Tensor Rotary::operator()(const at::Tensor& x, const at::Tensor& positions) const {
  return RotaryFunction::apply(x, cos, sin, positions.defined() ? std::optional(positions) : std::nullopt);
}

}  // namespace shardmark
