// Layers as functions over the parameters of a model. They hold references to the model's tensors, whose
// addresses are stable, while a strategy changes the memory that these tensors point to.
#pragma once

#include <string>

#include "kernels/fused.h"
#include "models/cross_entropy.h"
#include "models/model.h"
#include "models/parallel.h"

namespace shardmark {

// Matrix products whose backward comes in two parts: the gradient of their input at once, and those of their
// parameters later, where a pipeline would otherwise be idle (Qi et al., Zero Bubble Pipeline Parallelism,
// ICLR 2024), or while tensor-parallel ranks sum the gradient of their input.
//
// x is [..., in], weight [out, in], bias [out] or undefined. fp8: how it multiplies; nullptr: in its type.
at::Tensor split_linear(const Model& model, const LayerInput& x, const at::Tensor& weight,
                        const at::Tensor& bias, const Fp8* fp8 = nullptr);
// x is [N, in], weight [in, out], bias [out] or undefined.
at::Tensor split_projection(const Model& model, const LayerInput& x, const at::Tensor& weight,
                            const at::Tensor& bias, const Fp8* fp8 = nullptr);
inline bool splits_backward(const Model& model, const LayerInput& in) {
  return model.splits_backward || in.region;
}

struct Linear {  // weight [out, in]
  const at::Tensor &weight, &bias;
  const Model& model;
  at::Tensor operator()(const LayerInput& in) const {
    return splits_backward(model, in) ? split_linear(model, in, weight, bias)
                                      : at::linear(in.x, weight, bias);
  }
};

struct Matrix {  // weight [out, in]; no bias
  const at::Tensor& weight;
  const Model& model;
  bool is_in_block = false;  // of a transformer, whose products may be those of Model::fp8
  at::Tensor operator()(const LayerInput& in) const {
    const Fp8* const fp8 = is_in_block ? fp8_of(model) : nullptr;
    return splits_backward(model, in) || fp8 != nullptr ? split_linear(model, in, weight, {}, fp8)
                                                        : at::linear(in.x, weight);
  }
};

struct Projection {  // weight [in, out], x [N, in]
  const at::Tensor &weight, &bias;
  const Model& model;
  at::Tensor operator()(const LayerInput& in) const {
    if (splits_backward(model, in) || model.fp8)
      return split_projection(model, in, weight, bias, fp8_of(model));
    return model.fused ? fused_projection(model.fused, in.x, weight, bias) : at::addmm(bias, in.x, weight);
  }
  at::Tensor gelu(const LayerInput& in) const {
    return is_fused(in) ? fused_projection_gelu(model.fused, in.x, weight, bias)
                        : at::gelu((*this)(in), "tanh");
  }
  // Three parts of the columns.
  std::vector<at::Tensor> in_three(const LayerInput& in) const {
    return is_fused(in) ? fused_projection_in_three(model.fused, in.x, weight, bias)
                        : (*this)(in).chunk(3, 1);
  }
  bool is_fused(const LayerInput& in) const {
    return model.fused && !splits_backward(model, in) && !model.fp8;
  }
};

// The last layer of a tensor-parallel region (row-parallel in Megatron-LM): its weight is sharded by inputs,
// so that each rank computes a part of the sum, to which the bias is added once.
struct LastProjection {  // weight [in, out], x [N, in]
  const at::Tensor &weight, &bias;
  const Model& model;
  at::Tensor operator()(const at::Tensor& x) const {
    if (model.table().split.tensor == 1) return Projection{weight, bias, model}(x);
    const at::Tensor part = model.splits_backward || model.fp8
                                ? split_projection(model, x, weight, {}, fp8_of(model))
                                : at::mm(x, weight);
    return reduce_from_tensor_region(model, part) + bias;
  }
};
struct LastLinear {  // weight [out, in]
  const at::Tensor &weight, &bias;
  const Model& model;
  at::Tensor operator()(const at::Tensor& x) const {
    if (model.table().split.tensor == 1) return Linear{weight, bias, model}(x);
    return reduce_from_tensor_region(model, Matrix{weight, model}(x)) + bias;
  }
};

struct LayerNorm {  // over the last dimension; eps is GPT-2's
  const at::Tensor &weight, &bias;
  const Model& model;
  at::Tensor operator()(const at::Tensor& x) const { return of_sum(x, {}).second; }
  // Returns h = x + added (or x if `added` is undefined), and its norm.
  std::pair<at::Tensor, at::Tensor> of_sum(const at::Tensor& x, const at::Tensor& added) const {
    if (model.fused) return fused_layer_norm(model.fused, x, added, weight, bias, kEpsilon);
    const at::Tensor h = added.defined() ? x + added : x;
    return {h, at::layer_norm(h, weight.sizes(), weight, bias, kEpsilon)};
  }
  static constexpr double kEpsilon = 1e-5;
};

// For logits [N, classes] and targets [N]: the cross-entropy of each, and 1 if no class is more likely than
// the target. Double [N, 2].
inline at::Tensor target_scores(const at::Tensor& logits, const at::Tensor& targets) {
  const at::Tensor precise = logits.to(at::kDouble);
  const at::Tensor losses = at::cross_entropy_loss(precise, targets, {}, at::Reduction::None);
  return at::stack({losses, precise.argmax(1).eq(targets).to(at::kDouble)}, 1);
}

// What the last block returns: the loss, as a mean over targets; or the scores of the targets; or the logits
// [N, classes] if the batch has no targets. 16-bit logits are converted to float first, because a sum over
// many classes needs it.
inline at::Tensor loss_or_logits(const at::Tensor& logits, const Batch& batch) {
  const at::Tensor precise = logits.element_size() < 4 ? logits.to(at::kFloat) : logits;
  if (batch.wants_scores) return target_scores(precise, batch.targets.flatten());
  return batch.targets.defined() ? at::cross_entropy_loss(precise, batch.targets.flatten()) : precise;
}

// The output layer of a language model, with weight [V, C], and its loss, for states x [N, C]. If backward
// comes in two parts, the second one computes the gradient of the weight, in each of the forms below.
inline at::Tensor language_head(const Model& model, const at::Tensor& x, const at::Tensor& weight,
                                const Batch& batch) {
  if (model.table().split.tensor > 1) {
    const at::Tensor logits = Matrix{weight, model}(copy_to_tensor_region(model, x));
    return loss_over_sharded_vocabulary(model, logits, batch, model.table().sample.num_classes);
  }
  if (!model.gpu_forms || !at::isReducedFloatingType(model.dtype()))
    return loss_or_logits(Matrix{weight, model}(x), batch);
  if (batch.targets.defined() && !batch.wants_scores && model.dtype() == at::kBFloat16)
    return linear_cross_entropy(x, weight, batch.targets.flatten(), model.fused, kRowMultiple, &model);
  return loss_or_logits(
      model.splits_backward ? split_linear(model, x, weight, {}) : aligned_linear(x, weight), batch);
}

// Makes the layer `name` of a model: Linear, or any other layer that has a weight and a bias.
template <class Layer>
Layer layer(Model& model, const std::string& name) {
  return {model.parameter(name + ".weight"), model.parameter(name + ".bias"), model};
}

}  // namespace shardmark
