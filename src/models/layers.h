// Layers as functions over parameter slots. They hold references: the slots' addresses are stable, what
// stands behind them changes as the strategy moves memory.
#pragma once

#include <string>

#include "models/model.h"

namespace shardmark {

struct Linear {  // weight [out, in]
  const at::Tensor &weight, &bias;
  at::Tensor operator()(const at::Tensor& x) const { return at::linear(x, weight, bias); }
};

struct Projection {  // weight [in, out], x [N, in]
  const at::Tensor &weight, &bias;
  at::Tensor operator()(const at::Tensor& x) const { return at::addmm(bias, x, weight); }
};

struct LayerNorm {  // over the last dimension; eps as GPT-2's
  const at::Tensor &weight, &bias;
  at::Tensor operator()(const at::Tensor& x) const {
    return at::layer_norm(x, weight.sizes(), weight, bias, 1e-5);
  }
};

// Mean over the rows of logits [N, classes]; 16-bit logits become float first, because a sum over many
// classes needs it.
inline at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& targets) {
  const bool short_type = logits.element_size() < 4;
  return at::cross_entropy_loss(short_type ? logits.to(at::kFloat) : logits, targets);
}

// The layer `name` of a model: Linear or any other with a weight and a bias.
template <class Layer>
Layer layer(Model& model, const std::string& name) {
  return {model.parameter(name + ".weight"), model.parameter(name + ".bias")};
}

}  // namespace shardmark
