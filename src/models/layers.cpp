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

  at::Tensor bias_gradient(const at::Tensor& dy) const {
    return model.fused ? column_sum(model.fused, dy) : dy.sum(0);
  }
};

struct OfProduct : torch::CustomClassHolder {
  OfProduct(const Slots& its_slots, const LayerInput& in) : slots(its_slots), region(in.region) {}
  Slots slots;
  c10::intrusive_ptr<TensorRegion> region;  // of the input

  bool keeps_input() const { return !region || !region->gathers_again(); }

  // Leaves the gradients of the parameters for later, if that is to be, and returns whether it is. In a
  // tensor-parallel region they are computed while dx is summed over ranks, and if backward comes in two
  // parts, in the second. kept: what `add` is given if the region does not gather the input again.
  bool leaves(const at::Tensor& dx, const at::Tensor& kept, const TensorRegion::AddGradients& add) const {
    if (region && dx.defined()) {
      region->leave([=](const at::Tensor& again) { add(again.defined() ? again : kept); });
      return true;
    }
    if (slots.model.deferred == nullptr) return false;
    slots.model.deferred->push_back([=] { add(kept); });
    return true;
  }
};

// What both forms of products below find in their backward.
struct Backward {
  at::Tensor weight;
  c10::intrusive_ptr<OfProduct> of;
  bool is_projection;
  at::Tensor dy;  // [N, out]

  Backward(AutogradContext* ctx, const at::Tensor& its_weight, const at::Tensor& gradient)
      : weight(its_weight),
        of(c10::static_intrusive_pointer_cast<OfProduct>(ctx->saved_data["of"].toCapsule())),
        is_projection(ctx->saved_data["is_projection"].toBool()),
        dy(gradient.reshape({-1, gradient.size(-1)})) {
    if (of->region) of->region->begin_backward();
  }

  // dx [N, in] in the shape of the input.
  at::Tensor shaped(const at::Tensor& dx, const at::Tensor& gradient) const {
    std::vector<int64_t> shape = gradient.sizes().vec();
    shape.back() = weight.size(is_projection ? 0 : 1);
    return dx.view(shape);
  }
};

void keep_for_backward(AutogradContext* ctx, const c10::intrusive_ptr<OfProduct>& of, bool is_projection) {
  ctx->saved_data["of"] = at::IValue::make_capsule(of);
  ctx->saved_data["is_projection"] = is_projection;
}

// y = x W + b, with W the weight or its transpose. The gradients are dx = dy W', dW = x' dy and db = the
// sum of dy over rows. dx is computed at once, and dW and db are left for later if they can be. Otherwise
// they are returned to autograd.
struct SplitProduct : torch::autograd::Function<SplitProduct> {
  // weight: [in, out] where is_projection, else [out, in].
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, const c10::intrusive_ptr<OfProduct>& of,
                            bool is_projection) {
    ctx->save_for_backward({of->keeps_input() ? x : at::Tensor(), weight});
    keep_for_backward(ctx, of, is_projection);
    if (is_projection) return bias ? at::addmm(*bias, x, weight) : at::mm(x, weight);
    return at::linear(x, weight, bias);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& outputs) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor x = saved[0].defined() ? saved[0].detach() : saved[0];  // undefined: is gathered again
    const Backward of_this(ctx, saved[1], outputs[0]);
    const auto& [weight, of, is_projection, dy] = of_this;
    const Slots& slots = of->slots;
    at::Tensor dx;
    if (ctx->needs_input_grad(0))
      dx = of_this.shaped(at::mm(dy, is_projection ? weight.t() : weight), outputs[0]);
    const auto factors = [dy = dy, is_projection = is_projection](const at::Tensor& input) {
      const at::Tensor rows = input.reshape({-1, input.size(-1)});
      return is_projection ? std::pair(rows.t(), dy) : std::pair(dy.t(), rows);
    };
    // Fused kernels add to gradients by themselves. Else, without a split, this rounds as autograd does when
    // it adds the gradients that are returned below.
    const bool adds =
        slots.model.deferred != nullptr || (slots.model.fused && slots.model.fused->adds_gradients);
    const auto add = [=](const at::Tensor& input) {
      const auto [left, right] = factors(input);
      if (adds)
        slots.weight.mutable_grad().addmm_(left, right);
      else
        slots.weight.mutable_grad().add_(at::mm(left, right));
      if (slots.bias != nullptr) slots.bias->mutable_grad().add_(slots.bias_gradient(dy));
    };
    if (of->leaves(dx, x, add)) return {dx, {}, {}, {}, {}};
    const auto [left, right] = factors(x);
    return {dx, at::mm(left, right), slots.bias == nullptr ? at::Tensor() : slots.bias_gradient(dy), {}, {}};
  }
};

// The same with factors that are rounded to 8 bits (models/fp8.h). An input is rounded once for all layers
// that read it, by rows for forward and by columns for the gradients of weights, so that backward keeps one
// byte of an element; or each layer rounds it once more, if it is gathered again. The gradient of an output
// is rounded once for both products of backward. A weight is rounded for each of its two products.
struct Fp8Product : torch::autograd::Function<Fp8Product> {
  static constexpr WantedLines kRows = {true, false}, kColumns = {false, true};

  // The factor of the products with x, or of those with dy.
  static Fp8Factor of_weight(const Fp8& fp8, const at::Tensor& weight, const LargestMagnitudes& largest,
                             bool takes_rows) {
    const Fp8Matrix matrix = fp8_matrix(fp8, weight, Holds::values, takes_rows ? kRows : kColumns, largest);
    return takes_rows ? matrix.rows : matrix.columns;
  }

  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, const c10::intrusive_ptr<OfProduct>& of,
                            bool is_projection, const RoundedInput& in) {
    const Fp8& fp8 = *of->slots.model.fp8;
    const LargestMagnitudes largest = fp8_largest(fp8, weight);
    const Fp8Lines& columns = in.codes.columns.lines;
    ctx->save_for_backward({weight, is_projection ? largest.of_rows : largest.of_columns, columns.codes,
                            columns.scale, of->keeps_input() ? at::Tensor() : in.largest.of_columns});
    keep_for_backward(ctx, of, is_projection);
    const at::Tensor y =
        fp8_product(fp8, in.codes.rows, of_weight(fp8, weight, largest, !is_projection), x.scalar_type());
    if (bias) y.add_(*bias);
    std::vector<int64_t> shape = x.sizes().vec();
    shape.back() = y.size(1);
    return y.view(shape);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& outputs) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &largest_of_weight = saved[1], &codes = saved[2], &scale = saved[3],
                     &largest_of_input = saved[4];
    const Backward of_this(ctx, saved[0], outputs[0]);
    const auto& [weight, of, is_projection, dy] = of_this;
    const Slots& slots = of->slots;
    const Fp8& fp8 = *slots.model.fp8;
    const at::ScalarType type = dy.scalar_type();
    const bool needs_dx = ctx->needs_input_grad(0);
    const Fp8Matrix gradient = fp8_matrix(fp8, dy, Holds::gradients, {needs_dx, true}, fp8_largest(fp8, dy));
    at::Tensor dx;
    if (needs_dx) {
      const Fp8Factor factor = of_weight(fp8, weight, {largest_of_weight, largest_of_weight}, is_projection);
      dx = of_this.shaped(fp8_product(fp8, gradient.rows, factor, type), outputs[0]);
    }
    // `again` is the input if it has been gathered again.
    const auto product = [=, &fp8, kept = Fp8Factor{{codes, scale}}, largest = largest_of_input,
                          is_projection = is_projection,
                          dy_columns = gradient.columns](const at::Tensor& again) {
      Fp8Factor of_input = kept;
      if (again.defined())
        of_input =
            fp8_matrix(fp8, again.reshape({-1, again.size(-1)}), Holds::values, kColumns, {largest, largest})
                .columns;
      return is_projection ? fp8_product(fp8, of_input, dy_columns, type)
                           : fp8_product(fp8, dy_columns, of_input, type);
    };
    const at::Tensor of_bias = slots.bias == nullptr ? at::Tensor() : slots.bias_gradient(dy);
    // dy itself is not needed later.
    const auto add = [=](const at::Tensor& again) {
      slots.weight.mutable_grad().add_(product(again));
      if (of_bias.defined()) slots.bias->mutable_grad().add_(of_bias);
    };
    if (of->leaves(dx, {}, add)) return {dx, {}, {}, {}, {}, {}};
    return {dx, product({}), of_bias, {}, {}, {}};
  }
};

at::Tensor split_product(const Model& model, const LayerInput& in, const at::Tensor& weight,
                         const at::Tensor& bias, bool is_projection, const Fp8* fp8) {
  const auto of = c10::make_intrusive<OfProduct>(Slots{model, weight, bias.defined() ? &bias : nullptr}, in);
  const auto its_bias = bias.defined() ? std::optional(bias) : std::nullopt;
  return fp8 == nullptr ? SplitProduct::apply(in.x, weight, its_bias, of, is_projection)
                        : Fp8Product::apply(in.x, weight, its_bias, of, is_projection, in.rounded(*fp8));
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
