// Layers as functions over parameter slots. They hold references: the slots' addresses are stable, what
// stands behind them changes as the strategy moves memory.
#pragma once

#include <string>

#include "models/cross_entropy.h"
#include "models/model.h"

namespace shardmark {

struct Linear {  // weight [out, in]
  const at::Tensor &weight, &bias;
  at::Tensor operator()(const at::Tensor& x) const { return at::linear(x, weight, bias); }
};

struct Matrix {  // weight [out, in]; no bias
  const at::Tensor& weight;
  at::Tensor operator()(const at::Tensor& x) const { return at::linear(x, weight); }
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

// The output layer of a language model, of weight [V, C], with its loss, over states h [N, C].
inline at::Tensor language_head(const Model& model, const at::Tensor& h, const at::Tensor& weight,
                                const Batch& batch) {
  if (!model.gpu_forms || !at::isReducedFloatingType(model.dtype()))
    return loss_or_logits(at::linear(h, weight), batch);
  if (batch.targets.defined() && model.dtype() == at::kBFloat16)
    return linear_cross_entropy(h, weight, batch.targets.flatten());
  return loss_or_logits(aligned_linear(h, weight), batch);
}

// The layer `name` of a model: Linear or any other with a weight and a bias.
template <class Layer>
Layer layer(Model& model, const std::string& name) {
  return {model.parameter(name + ".weight"), model.parameter(name + ".bias")};
}

}  // namespace shardmark
