// Lets the backward of an autograd function find the model that it computes for.
#pragma once

#include <torch/csrc/autograd/custom_function.h>

#include "models/model.h"

namespace shardmark {

struct KeptModel : torch::CustomClassHolder {
  explicit KeptModel(const Model& of) : model(of) {}
  const Model& model;
};

inline void keep_model(torch::autograd::AutogradContext* ctx, const Model& model) {
  ctx->saved_data["model"] = at::IValue::make_capsule(c10::make_intrusive<KeptModel>(model));
}
inline const Model& kept_model(torch::autograd::AutogradContext* ctx) {
  return static_cast<KeptModel&>(*ctx->saved_data.at("model").toCapsule()).model;
}

// Where backward leaves the gradients of parameters for later. nullptr: it computes them at once, or no model
// was kept.
inline DeferredGradients* kept_deferred(torch::autograd::AutogradContext* ctx) {
  return ctx->saved_data.count("model") > 0 ? kept_model(ctx).deferred : nullptr;
}

}  // namespace shardmark
