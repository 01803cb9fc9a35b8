// What Llama's transformer blocks are made of, beside linear layers: each is one autograd function, which
// keeps for its backward only what cannot be computed again in a pass.
#pragma once

#include "models/model.h"

namespace shardmark {

// x weight / sqrt(mean(x^2) + eps) over the last dimension; keeps x and one number per row. 16-bit types are
// computed in float inside.
struct RmsNorm {
  const Model& model;
  const at::Tensor& weight;
  at::Tensor operator()(const at::Tensor& x) const;
};

// silu(gate) up; keeps both.
at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up);

// Rotary position embedding (Su et al. 2021) as Hugging Face lays it out: channel i of a head and channel i +
// D/2 make a pair, which position t turns by the angle t theta^(-2i/D). Angles are float in every type, as
// Llama was trained.
struct Rotary {
  at::Tensor cos, sin;  // [T, 1, D/2]

  // factor: of Llama 3's scaling, which divides the frequencies of wavelengths above the 8192 tokens of its
  // first training, leaves those below a quarter of that, and interpolates between; 1: none.
  Rotary(int64_t positions, int64_t head_width, double theta, double factor, at::TensorOptions options);
  // x [B, T, H, D], its tokens' positions [B, T]; undefined: 0, 1, 2 ...
  at::Tensor operator()(const at::Tensor& x, const at::Tensor& positions) const;
};

}  // namespace shardmark
