// Layers for ranks that share a model's blocks (tensor and sequence parallelism) and sequences (context
// parallelism): what they exchange when they enter and leave a tensor-parallel region (Megatron-LM's f and g,
// and their counterparts for sequence_parallel), embedding and cross-entropy over a sharded vocabulary, and
// keys and values of a whole sequence. With one rank, each is the plain layer. Sources: Shoeybi et al. 2019,
// section 3; Korthikanti et al. 2022, section 4.2; Grattafiori et al. 2024, section 3.3.2.
//
// B: batch, T: tokens of a sample that the rank has, C: width, V: the rank's shard of the vocabulary, c:
// context-parallel ranks.
#pragma once

#include <torch/csrc/autograd/custom_function.h>

#include <memory>

#include "models/model.h"

namespace shardmark {

// What the layers that read the input of a tensor-parallel region have in common in backward. Each computes
// its gradient of the input first and leaves the gradients of its parameters here, which are then computed
// while the gradient of the input is summed over ranks (as Megatron-LM hides this sum). With
// Split::gathers_again, the input is gathered again while layers compute their gradients of it.
class TensorRegion : public torch::CustomClassHolder {
 public:
  // own: this rank's rows of the input if it is to be gathered again; else undefined, and layers keep it.
  TensorRegion(const Model& model, at::Tensor own) : model_(model), own_(std::move(own)) {}
  const Model& model() const { return model_; }
  bool gathers_again() const { return own_.defined(); }
  // For the backward of a layer, which calls this before it computes: starts the gather, if nobody has.
  void begin_backward();
  // Computes the gradients of a layer's parameters and adds them. `input` is undefined if layers keep it.
  // What the function keeps must be detached: a tensor that knows how it was computed knows this region.
  using AddGradients = std::function<void(const at::Tensor& input)>;
  void leave(AddGradients add) { left_.push_back(std::move(add)); }
  // Starts a collective over tensor-parallel ranks, computes what layers have left, and waits. If backward
  // comes in two parts, the second one computes it.
  void communicate(specs::Collective what, const at::Tensor& out, const at::Tensor& in);

 private:
  const Model& model_;
  at::Tensor own_, input_;
  std::function<void()> wait_for_input_;
  std::vector<AddGradients> left_;
};

// An input [N, C] of layers that is rounded for their products in fp8. Backward keeps its columns in place of
// the input; or, if the input is gathered again, the magnitudes by which it is then rounded.
struct RoundedInput {
  Fp8Matrix codes;
  LargestMagnitudes largest;
};

// Activations [N, C] of all tokens that layers read.
struct LayerInput {
  LayerInput(at::Tensor all) : x(std::move(all)) {}  // NOLINT: any activations are an input of a layer
  LayerInput(at::Tensor all, c10::intrusive_ptr<TensorRegion> of)
      : x(std::move(all)), region(std::move(of)) {}
  at::Tensor x;
  c10::intrusive_ptr<TensorRegion> region;  // none outside of tensor-parallel regions

  // It is rounded once for all layers that read it.
  const RoundedInput& rounded(const Fp8& fp8) const;

 private:
  mutable std::shared_ptr<const RoundedInput> rounded_;
};

// Enters a tensor-parallel region with activations [N, C], of which all tensor-parallel ranks have all
// tokens, or a part of the tokens each (sequence_parallel). Returns all tokens. In backward the gradients of
// all ranks are summed. keeps_input: see specs::Region.
LayerInput copy_to_tensor_region(const Model& model, const at::Tensor& x, bool keeps_input = false);
// Leaves the region: sums [N, C] over tensor-parallel ranks, and returns all tokens or this rank's part of
// them.
at::Tensor reduce_from_tensor_region(const Model& model, const at::Tensor& x);

// This rank's part of the tokens (sequence_parallel) among rows [N, ...].
at::Tensor own_rows(const Model& model, const at::Tensor& rows);

// The rows of ids [B, T] in a table [V, C] that is sharded over the vocabulary: [B T, C], or this rank's part
// of the tokens.
at::Tensor embedded(const Model& model, const at::Tensor& table, const at::Tensor& ids);

// The mean cross-entropy over targets, or their scores, for logits [N, V] of this rank's shard of a
// vocabulary of `vocabulary` tokens. In bf16 the gradient takes the memory of the logits.
at::Tensor loss_over_sharded_vocabulary(const Model& model, const at::Tensor& logits, const Batch& batch,
                                        int64_t vocabulary);

// The tokens of a context-parallel rank r, among those of a sample [B, T, ...]: parts r and 2c - 1 - r of 2c
// parts, so that all ranks have the same share of the causal mask's work.
at::Tensor own_tokens(const specs::Split& split, const at::Tensor& of_sample);
// All-gathers keys and values [B, T, K, D] to those of the whole sequence, [B, c T, K, D] each, in order.
std::pair<at::Tensor, at::Tensor> of_whole_sequence(const Model& model, const at::Tensor& keys,
                                                    const at::Tensor& values);

// own_part() is a tensor-parallel rank's shard of a parameter of `spec.whole_shape()`. assembled() is the
// whole parameter of the shards of all ranks, [ranks, spec.shape...]. Both return a parameter that is not
// sharded as it is.
at::Tensor own_part(const at::Tensor& whole, const specs::ParameterSpec& spec);
at::Tensor assembled(const at::Tensor& parts, const specs::ParameterSpec& spec);

}  // namespace shardmark
