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

// What the last block returns: the loss, a mean over targets; the logits [N, classes] where the batch has no
// targets. 16-bit logits become float first, because a sum over many classes needs it.
inline at::Tensor loss_or_logits(const at::Tensor& logits, const Batch& batch) {
  const at::Tensor precise = logits.element_size() < 4 ? logits.to(at::kFloat) : logits;
  return batch.targets.defined() ? at::cross_entropy_loss(precise, batch.targets.flatten()) : precise;
}

// The layer `name` of a model: Linear or any other with a weight and a bias.
template <class Layer>
Layer layer(Model& model, const std::string& name) {
  return {model.parameter(name + ".weight"), model.parameter(name + ".bias")};
}

}  // namespace shardmark
