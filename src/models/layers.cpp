// Matrix products whose backward comes in two parts, for both orders of the weight's dimensions.
#include "models/layers.h"

#include <torch/csrc/autograd/custom_function.h>

#include "kernels/fused.h"

namespace shardmark {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// References to the model's parameters. The memory behind them when the gradients are added is what counts.
struct Slots {
  const Model& model;
  const at::Tensor& weight;
  const at::Tensor* bias;
  const Fp8* fp8;

  // a [M, K] times b [K, N].
  at::Tensor product(const at::Tensor& a, Holds a_holds, const at::Tensor& b, Holds b_holds) const {
    return fp8 != nullptr ? fp8_product(*fp8, {a, a_holds}, {b, b_holds}) : at::mm(a, b);
  }

  at::Tensor bias_gradient(const at::Tensor& dy) const {
    return model.fused ? column_sum(model.fused, dy) : dy.sum(0);
  }
};

struct OfProduct : torch::CustomClassHolder {
  OfProduct(const Slots& its_slots, const LayerInput& in) : slots(its_slots), region(in.region) {}
  Slots slots;
  c10::intrusive_ptr<TensorRegion> region;  // of the input
};

// y = x W + b, with W the weight or its transpose. The gradients are dx = dy W', dW = x' dy and db = the
// sum of dy over rows. dx is computed at once. There are three ways for dW and db. In a tensor-parallel
// region they are left to the region, which computes them while dx is summed over ranks. If backward comes
// in two parts, they are deferred to the second. Otherwise they are returned to autograd.
struct SplitProduct : torch::autograd::Function<SplitProduct> {
  // weight: [in, out] where is_projection, else [out, in].
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, const c10::intrusive_ptr<OfProduct>& of,
                            bool is_projection) {
    const bool keeps_input = !of->region || !of->region->gathers_again();
    ctx->save_for_backward({keeps_input ? x : at::Tensor(), weight});
    ctx->saved_data["of"] = at::IValue::make_capsule(of);
    ctx->saved_data["is_projection"] = is_projection;
    if (of->slots.fp8 != nullptr) {
      const at::Tensor rows = x.reshape({-1, x.size(-1)});
      const at::Tensor y =
          of->slots.product(rows, Holds::values, is_projection ? weight : weight.t(), Holds::values);
      if (bias) y.add_(*bias);
      std::vector<int64_t> shape = x.sizes().vec();
      shape.back() = y.size(1);
      return y.view(shape);
    }
    if (is_projection) return bias ? at::addmm(*bias, x, weight) : at::mm(x, weight);
    return at::linear(x, weight, bias);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& outputs) {
    const at::Tensor x = ctx->get_saved_variables()[0], weight = ctx->get_saved_variables()[1];
    const auto of = c10::static_intrusive_pointer_cast<OfProduct>(ctx->saved_data["of"].toCapsule());
    const Slots& slots = of->slots;
    const bool is_projection = ctx->saved_data["is_projection"].toBool();
    const at::Tensor dy = outputs[0].reshape({-1, outputs[0].size(-1)});
    if (of->region) of->region->begin_backward();
    at::Tensor dx;
    if (ctx->needs_input_grad(0)) {
      std::vector<int64_t> shape = outputs[0].sizes().vec();
      shape.back() = weight.size(is_projection ? 0 : 1);
      dx =
          slots.product(dy, Holds::gradients, is_projection ? weight.t() : weight, Holds::values).view(shape);
    }
    struct Factors {
      at::Tensor left, right;
      Holds left_holds, right_holds;
    };
    const auto factors = [=](const at::Tensor& input) {
      const at::Tensor rows = input.reshape({-1, input.size(-1)});
      return is_projection ? Factors{rows.t(), dy, Holds::values, Holds::gradients}
                           : Factors{dy.t(), rows, Holds::gradients, Holds::values};
    };
    const auto product = [=](const at::Tensor& input) {
      const auto [left, right, left_holds, right_holds] = factors(input);
      return slots.product(left, left_holds, right, right_holds);
    };
    const bool is_split = slots.model.deferred != nullptr;
    // Fused kernels add to gradients by themselves. Else, without a split, this rounds as autograd does when
    // it adds the gradients that are returned below.
    const bool adds =
        slots.fp8 == nullptr && (is_split || (slots.model.fused && slots.model.fused->adds_gradients));
    const at::Tensor kept = x.defined() ? x.detach() : x;
    const auto add = [=](const at::Tensor& input) {
      if (adds) {
        const Factors both = factors(input);
        slots.weight.mutable_grad().addmm_(both.left, both.right);
      } else {
        slots.weight.mutable_grad().add_(product(input));
      }
      if (slots.bias != nullptr) slots.bias->mutable_grad().add_(slots.bias_gradient(dy));
    };
    if (of->region && dx.defined()) {
      of->region->leave([=](const at::Tensor& again) { add(again.defined() ? again : kept); });
    } else if (is_split) {
      slots.model.deferred->push_back([=] { add(kept); });
    } else {
      return {dx, product(x), slots.bias == nullptr ? at::Tensor() : slots.bias_gradient(dy), {}, {}};
    }
    return {dx, {}, {}, {}, {}};
  }
};

at::Tensor split_product(const Model& model, const LayerInput& in, const at::Tensor& weight,
                         const at::Tensor& bias, bool is_projection, const Fp8* fp8) {
  const Slots slots{model, weight, bias.defined() ? &bias : nullptr, fp8};
  return SplitProduct::apply(in.x, weight, bias.defined() ? std::optional(bias) : std::nullopt,
                             c10::make_intrusive<OfProduct>(slots, in), is_projection);
}

}  // namespace

at::Tensor split_linear(const Model& model, const LayerInput& x, const at::Tensor& weight,
                        const at::Tensor& bias, const Fp8* fp8) {
  return split_product(model, x, weight, bias, false, fp8);
}

at::Tensor split_projection(const Model& model, const LayerInput& x, const at::Tensor& weight,
                            const at::Tensor& bias, const Fp8* fp8) {
  return split_product(model, x, weight, bias, true, fp8);
}

}  // namespace shardmark
