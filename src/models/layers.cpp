// Matrix products whose backward comes in two parts, for both orders of the weight's dimensions.
#include "models/layers.h"

#include <torch/csrc/autograd/custom_function.h>

#include "kernels/fused.h"

namespace shardmark {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// References to the model's parameters. The memory behind them when the gradients are added is what counts.
struct Slots : torch::CustomClassHolder {
  Slots(const Model& of, const at::Tensor& w, const at::Tensor* b) : model(of), weight(w), bias(b) {}
  const Model& model;
  const at::Tensor& weight;
  const at::Tensor* bias;
};

at::Tensor bias_gradient(const Model& model, const at::Tensor& dy) {
  return model.fused ? column_sum(model.fused, dy) : dy.sum(0);
}

struct SplitProduct : torch::autograd::Function<SplitProduct> {
  // weight: [in, out] where is_projection, else [out, in].
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, const c10::intrusive_ptr<Slots>& slots,
                            bool is_projection) {
    ctx->save_for_backward({x, weight});
    ctx->saved_data["slots"] = at::IValue::make_capsule(slots);
    ctx->saved_data["is_projection"] = is_projection;
    if (is_projection) return bias ? at::addmm(*bias, x, weight) : at::mm(x, weight);
    return at::linear(x, weight, bias);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& outputs) {
    const at::Tensor x = ctx->get_saved_variables()[0], weight = ctx->get_saved_variables()[1];
    const auto slots = c10::static_intrusive_pointer_cast<Slots>(ctx->saved_data["slots"].toCapsule());
    const bool is_projection = ctx->saved_data["is_projection"].toBool();
    const at::Tensor dy = outputs[0].reshape({-1, outputs[0].size(-1)});
    const at::Tensor rows = x.reshape({-1, x.size(-1)});
    const at::Tensor dx = ctx->needs_input_grad(0)
                              ? at::mm(dy, is_projection ? weight.t() : weight).view(x.sizes())
                              : at::Tensor();
    const at::Tensor left = is_projection ? rows.t() : dy.t(), right = is_projection ? dy : rows;
    if (slots->model.deferred == nullptr)
      return {dx,
              at::mm(left, right),
              slots->bias == nullptr ? at::Tensor() : bias_gradient(slots->model, dy),
              {},
              {}};
    slots->model.deferred->push_back([slots, dy, left, right] {
      slots->weight.mutable_grad().addmm_(left, right);
      if (slots->bias != nullptr) slots->bias->mutable_grad().add_(bias_gradient(slots->model, dy));
    });
    return {dx, {}, {}, {}, {}};
  }
};

at::Tensor split_product(const Model& model, const at::Tensor& x, const at::Tensor& weight,
                         const at::Tensor& bias, bool is_projection) {
  const auto slots = c10::make_intrusive<Slots>(model, weight, bias.defined() ? &bias : nullptr);
  return SplitProduct::apply(x, weight, bias.defined() ? std::optional(bias) : std::nullopt, slots,
                             is_projection);
}

}  // namespace

at::Tensor split_linear(const Model& model, const at::Tensor& x, const at::Tensor& weight,
                        const at::Tensor& bias) {
  return split_product(model, x, weight, bias, false);
}

at::Tensor split_projection(const Model& model, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias) {
  return split_product(model, x, weight, bias, true);
}

}  // namespace shardmark
