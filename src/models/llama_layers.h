// The layers of Llama's transformer blocks other than linear ones. Each is one autograd function, which keeps
// for its backward only what cannot be recomputed in one pass.
#pragma once

#include "models/model.h"

namespace shardmark {

// x weight / sqrt(mean(x^2) + eps) over the last dimension. It keeps x and one number per row, and computes
// 16-bit types in float.
struct RmsNorm {
  const Model& model;
  const at::Tensor& weight;
  at::Tensor operator()(const at::Tensor& x) const;
};

// silu(gate) up. It keeps both inputs.
at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up);

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
  at::Tensor operator()(const at::Tensor& x, const at::Tensor& positions) const;
};

}  // namespace shardmark
