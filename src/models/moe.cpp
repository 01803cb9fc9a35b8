// moe and moe_8x7b: a Llama whose MLPs are mixtures of experts.
#include "specs/models/moe.h"

#include "models/dispatch.h"
#include "models/experts.h"
#include "models/kept_model.h"
#include "models/layers.h"
#include "models/llama.h"
#include "models/parallel.h"
#include "specs/routing.h"

namespace shardmark::moe {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Returns y unchanged. In backward, `penalty` gets the gradient that it would get as a part of the loss. It
// is not added to the loss itself, which may be on another pipeline stage.
struct AddToLoss : torch::autograd::Function<AddToLoss> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& y, const at::Tensor& penalty,
                            const Model& model) {
    keep_model(ctx, model);
    ctx->saved_data["type"] = penalty.scalar_type();
    return y.view_as(y);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& outputs) {
    return {outputs[0], kept_model(ctx).loss_gradient(ctx->saved_data["type"].toScalarType()), {}};
  }
};

// The experts of tokens by a rule, which are kept on the device. With a rule that moves they are other ones
// in each step.
class RuledChoices {
 public:
  RuledChoices(const Model& model, const specs::MoeShape& shape, int64_t layer)
      : model_(model), shape_(shape), layer_(layer), moved_(specs::moved_in_a_step(shape.routing)) {}

  // For num_tokens tokens, which are those of whole samples or of a tensor rank's one of `parts` of them:
  // int64 [num_tokens, top_k].
  at::Tensor operator()(int64_t num_tokens, int64_t parts) {
    if (!of_sample_.defined()) {
      const int64_t tokens = model_.table().sample.tokens();
      const std::vector<int64_t> experts =
          specs::experts_of_tokens(shape_.routing, {shape_.experts, shape_.top_k, tokens}, layer_);
      const at::Tensor of_all = at::tensor(experts, at::kLong).view({1, tokens, shape_.top_k});
      of_sample_ = own_tokens(model_.table().split, of_all).squeeze(0).to(model_.device());
    }
    const at::Tensor of_all = of_sample_.repeat({num_tokens * parts / of_sample_.size(0), 1});
    const at::Tensor choices = parts > 1 ? own_rows(model_, of_all) : of_all;
    return moved_ == 0 ? choices : choices.add(model_.step * moved_).remainder_(shape_.experts);
  }

 private:
  const Model& model_;
  specs::MoeShape shape_;
  int64_t layer_, moved_;
  at::Tensor of_sample_;
};

struct Mixture {
  Model& model;
  specs::MoeShape shape;
  std::shared_ptr<RuledChoices> choices;  // none: the router decides
  Matrix router;
  const at::Tensor &w1, &w3, &w2;
  InnerMlp shared;  // the expert of all tokens; empty if there is none
  at::Tensor load;  // int64 [E]: the layer's row of Model::expert_load

  // Tensor-parallel ranks share the inner channels of each expert. All have all tokens and all logits, so
  // that they choose alike; each weights what its channels make of a token, and their gradients of the logits
  // add up. If ranks share whole experts, each chooses for its own tokens.
  at::Tensor operator()(const at::Tensor& normed) const {
    const specs::Split& split = model.table().split;
    if (split.expert == 1) {
      const LayerInput in = copy_to_tensor_region(model, normed, /*keeps_input=*/true);
      const at::Tensor logits = copy_to_tensor_region(model, router(normed), /*keeps_input=*/true).x;
      const at::Tensor y = of_experts(in, logits);
      return reduce_from_tensor_region(model, shared ? y + shared(in) : y);
    }
    if (!shared) return of_experts(normed, router(normed));
    const at::Tensor of_shared =
        reduce_from_tensor_region(model, shared(copy_to_tensor_region(model, normed)));
    return of_experts(normed, router(normed)) + of_shared;
  }

  at::Tensor of_experts(const LayerInput& in, const at::Tensor& logits) const {
    const specs::Split& split = model.table().split;
    const int64_t num_tokens = logits.size(0), parts = split.token_ranks_of_experts() / split.context;
    const Routing routing =
        choices ? routed_to((*choices)(num_tokens, parts), logits) : routed(logits, shape.top_k);
    const at::Tensor tokens = routing.ends.to(at::kLong).diff(1, 0, at::zeros({1}, load.options()));
    const specs::SampleShape& sample = model.table().sample;
    const int64_t capacity =
        specs::expert_capacity(shape, sample.tokens()) * (logits.size(0) / sample.tokens());
    const bool counts = split.expert > 1 || split.tensor_index == 0;  // else others have the same tokens
    if (!model.recompute && counts) load.add_(capacity > 0 ? tokens.clamp_max(capacity) : tokens);
    const at::Tensor y = experts_over_ranks(in, w1, w3, w2, routing, tokens, capacity, model);
    return shape.aux_loss > 0 ? AddToLoss::apply(y, penalty(logits, tokens), model) : y;
  }

  // The load-balancing loss: aux_loss E times the sum over experts of (share of the copies) x (mean
  // probability).
  at::Tensor penalty(const at::Tensor& logits, const at::Tensor& tokens) const {
    const auto precise = logits.element_size() < 4 ? at::kFloat : logits.scalar_type();
    const at::Tensor probability = logits.softmax(1, precise).mean(0);
    const double scale =
        shape.aux_loss * static_cast<double>(shape.experts) / static_cast<double>(logits.size(0));
    return at::dot(tokens.to(precise), probability) * scale;
  }
};

void add_moe_blocks(Model& model, const Options& options) {
  const specs::MoeShape shape = specs::moe_shape(options);
  const specs::LlamaShape llama = specs::llama_shape(options);
  model.expert_load =
      at::zeros({llama.layers, shape.experts}, at::TensorOptions(model.device()).dtype(at::kLong));
  int64_t layer = 0;
  add_llama_blocks(model, llama, [&](const std::string& name) -> Mlp {
    const std::string moe = name + ".block_sparse_moe";
    const auto matrix = [&](const char* of) -> const at::Tensor& {
      return model.parameter(moe + "." + of + ".weight");
    };
    const auto choices =
        specs::is_learned(shape.routing) ? nullptr : std::make_shared<RuledChoices>(model, shape, layer);
    return Mixture{model,
                   shape,
                   choices,
                   Matrix{matrix("gate"), model},
                   matrix("experts.*.w1"),
                   matrix("experts.*.w3"),
                   matrix("experts.*.w2"),
                   shape.shared_inner > 0 ? swiglu_mlp(model, moe + ".shared_expert") : InnerMlp(),
                   model.expert_load[layer++]};
  });
}

const ModelEntry kMoe{"a Llama whose MLPs are mixtures of experts", add_moe_blocks};
const Registration<ModelEntry> registered{"moe", kMoe};
const Registration<ModelEntry> moe_8x7b{"moe_8x7b", kMoe};

}  // namespace
}  // namespace shardmark::moe
