// The MLPs of a mixture of experts: tokens are sorted by expert, and the MLPs of all experts are grouped
// matrix products (Gale et al. 2022, "MegaBlocks": no token is dropped, and none is padded). With fp8 each
// expert has products of its own.
//
// Note [Weights inside]: the router's weight of a choice is applied before w2 instead of after it, which
// gives the same number. In backward, the gradient of a weight is then the product of two tensors that are
// there anyway, and the experts' outputs [N k, C] need not be kept. The copies of x are not kept either;
// backward gathers them again.
#include "models/experts.h"

#include <ATen/ops/_embedding_bag_forward_only.h>

#include <algorithm>
#include <utility>

#include "kernels/fused.h"
#include "models/kept_model.h"

namespace shardmark {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// LibTorch's grouped product takes neither double nor rows whose size is not a multiple of 16 bytes.
bool has_kernel(const at::Tensor& a, at::IntArrayRef inner) {
  return a.scalar_type() != at::kDouble && std::all_of(inner.begin(), inner.end(), [&](int64_t columns) {
           return columns * a.element_size() % 16 == 0;
         });
}

// Copies `ends` to the host and puts a 0 in front.
std::vector<int64_t> bounds(const at::Tensor& ends) {
  std::vector<int64_t> all = {0};
  const at::Tensor host = ends.cpu();
  all.insert(all.end(), host.data_ptr<int32_t>(), host.data_ptr<int32_t>() + host.numel());
  return all;
}

// For rows a [M, N] and b [M, K]: a^T b over the rows of each expert, [E, N, K].
at::Tensor grouped_gradient(const at::Tensor& a, const at::Tensor& b, const at::Tensor& ends) {
  if (a.size(0) == 0) return at::zeros({ends.numel(), a.size(1), b.size(1)}, a.options());
  if (has_kernel(a, {a.size(1), b.size(1)})) return at::_grouped_mm(a.t(), b, ends);
  const std::vector<int64_t> bound = bounds(ends);
  at::Tensor product = at::empty({ends.numel(), a.size(1), b.size(1)}, a.options());
  for (int64_t e = 0; e < ends.numel(); ++e) {
    at::Tensor own = product[e];
    const int64_t begin = bound[e], rows = bound[e + 1] - begin;
    at::mm_out(own, a.narrow(0, begin, rows).t(), b.narrow(0, begin, rows));
  }
  return product;
}

// Rows [M, N] of experts, as factors of their products.
struct ExpertRows {
  at::Tensor all;
  // With fp8 instead: those of each expert, rounded. Rows of zeros are added up to a multiple.
  std::vector<Fp8Matrix> rounded;

  // What the gradients of weights need.
  ExpertRows by_columns() const {
    ExpertRows columns = *this;
    for (Fp8Matrix& one : columns.rounded) one.rows = {};
    return columns;
  }
};

// The products of experts. With fp8, those of each expert are the products of a linear layer: its rows and
// its weights are matrices with scales of their own.
class ExpertProducts {
 public:
  // bounds: those of forward, for backward. With fp8, forward copies them to the host, which waits.
  ExpertProducts(const Fp8* fp8, const at::Tensor& ends, std::vector<int64_t> of_forward = {})
      : fp8_(fp8), ends_(ends), bounds_(std::move(of_forward)) {
    if (fp8_ != nullptr && bounds_.empty()) bounds_ = bounds(ends);
  }
  const std::vector<int64_t>& host_bounds() const { return bounds_; }

  ExpertRows rows(const at::Tensor& x, Holds holds, WantedLines wanted) const {
    if (fp8_ == nullptr) return {x, {}};
    ExpertRows rows;
    for (int64_t e = 0; e < num_experts(); ++e) {
      const at::Tensor own = x.narrow(0, bounds_[e], count(e));
      const int64_t missing = missing_to(fp8_multiple(*fp8_), count(e));
      const at::Tensor padded = missing == 0 ? own : at::constant_pad_nd(own, {0, 0, 0, missing});
      rows.rounded.push_back(fp8_matrix(*fp8_, padded, holds, wanted, fp8_largest(*fp8_, padded)));
    }
    return rows;
  }

  // The rows of each expert times its weights: [E, N, K] transposed, or [E, K, N].
  at::Tensor product(const ExpertRows& rows, const at::Tensor& weights, bool transposed) const {
    const at::Tensor as_right = transposed ? weights.transpose(1, 2) : weights;
    if (fp8_ == nullptr) return grouped_product(rows.all, as_right, ends_);
    at::Tensor products = at::empty({bounds_.back(), as_right.size(2)}, weights.options());
    for (int64_t e = 0; e < num_experts(); ++e) {
      if (count(e) == 0) continue;
      const at::Tensor own = weights[e];
      const Fp8Matrix rounded =
          fp8_matrix(*fp8_, own, Holds::values, {transposed, !transposed}, fp8_largest(*fp8_, own));
      const at::Tensor of_expert = fp8_product(
          *fp8_, rows.rounded[e].rows, transposed ? rounded.rows : rounded.columns, weights.scalar_type());
      products.narrow(0, bounds_[e], count(e)).copy_(of_expert.narrow(0, 0, count(e)));
    }
    return products;
  }

  // a^T b over the rows of each expert: the gradient of its weights, [E, N of a, N of b].
  at::Tensor gradient(const ExpertRows& a, const ExpertRows& b, const at::Tensor& weights) const {
    if (fp8_ == nullptr) return grouped_gradient(a.all, b.all, ends_);
    at::Tensor products = at::empty(weights.sizes(), weights.options());
    for (int64_t e = 0; e < num_experts(); ++e)
      products[e].copy_(
          fp8_product(*fp8_, a.rounded[e].columns, b.rounded[e].columns, weights.scalar_type()));
    return products;
  }

 private:
  const Fp8* fp8_;
  at::Tensor ends_;
  std::vector<int64_t> bounds_;
  int64_t num_experts() const { return std::ssize(bounds_) - 1; }
  int64_t count(int64_t e) const { return bounds_[e + 1] - bounds_[e]; }
};

// For h = r silu(g) u and its gradient dh: h, and the gradients of g, u and r. `weight` is r, [M, 1], and dr
// is [M]; the others are [M, I]. The memory of dh becomes that of dg.
WeightedSwiglu hidden_gradients(const Kernels& fused, at::Tensor dhidden, const at::Tensor& gate,
                                const at::Tensor& up, const at::Tensor& weight) {
  if (fused) return fused_weighted_swiglu_backward(fused, dhidden, gate, up, weight);
  at::Tensor gated = at::silu(gate), hidden = at::mul(gated, up);
  const at::Tensor dweight = at::mul(dhidden, hidden).sum(1);
  hidden.mul_(weight);
  dhidden.mul_(weight);
  const at::Tensor dup = gated.mul_(dhidden);
  at::silu_backward_out(dhidden, dhidden.mul_(up), gate);
  return {hidden, dhidden, dup, dweight};
}

// For each copy with weight r: g = w1 x, u = w3 x, h = silu(g) u, and the copy's part of the output is w2
// (r h). Backward, with dh = w2' dy: the gradient of r is dh . h, that of w2 is dy (r h)', and then du = r
// dh silu(g) and dg = r dh u silu'(g), from which follow the gradients of w1, w3 and x. Tensors are reused
// and freed as early as possible, because they are the largest of the block.
struct ExpertsFunction : torch::autograd::Function<ExpertsFunction> {
  static constexpr WantedLines kRows = {true, false}, kColumns = {false, true}, kBoth = {true, true};

  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& w1,
                            const at::Tensor& w3, const at::Tensor& w2, const at::Tensor& weights,
                            const Routing& routing, const c10::intrusive_ptr<TensorRegion>& region,
                            const Model* model) {
    if (model != nullptr) keep_model(ctx, *model);
    const at::Tensor &order = routing.order, &ends = routing.ends;
    const RowsOfTokens& of_tokens = routing.of_tokens;
    if (region) ctx->saved_data["region"] = at::IValue::make_capsule(region);
    const int64_t k = weights.size(1);
    const ExpertProducts products(model != nullptr ? fp8_of(*model) : nullptr, ends);
    ExpertRows rows = products.rows(x.index_select(0, order.div(k, "floor")), Holds::values, kRows);
    const at::Tensor gate = products.product(rows, w1, /*transposed=*/true);
    const at::Tensor up = products.product(rows, w3, /*transposed=*/true);
    rows = {};
    ctx->save_for_backward({x, w1, w3, w2, weights, order, ends, gate, up, of_tokens.rows, of_tokens.begin});
    ctx->saved_data["bounds"] = products.host_bounds();
    const at::Tensor weight = weights.flatten().index_select(0, order).unsqueeze(1);
    const at::Tensor hidden = model != nullptr && model->fused
                                  ? fused_weighted_swiglu(model->fused, gate, up, weight)
                                  : at::silu(gate).mul_(up).mul_(weight);
    return summed(products.product(products.rows(hidden, Holds::values, kRows), w2, /*transposed=*/true),
                  order, k, of_tokens);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& outputs) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &w1 = saved[1], &w3 = saved[2], &w2 = saved[3], &weights = saved[4];
    const at::Tensor &order = saved[5], &ends = saved[6], &gate = saved[7], &up = saved[8];
    const int64_t k = weights.size(1);
    const at::Tensor token = order.div(k, "floor");
    const at::Tensor weight = weights.flatten().index_select(0, order).unsqueeze(1);
    DeferredGradients* const later = kept_deferred(ctx);
    const bool has_model = ctx->saved_data.count("model") > 0;
    const ExpertProducts products(has_model ? fp8_of(kept_model(ctx)) : nullptr, ends,
                                  ctx->saved_data["bounds"].toIntVector());
    const Kernels fused = has_model ? kept_model(ctx).fused : Kernels();
    ExpertRows dy =
        products.rows(outputs[0].index_select(0, token), Holds::gradients, later == nullptr ? kBoth : kRows);
    WeightedSwiglu of_hidden =
        hidden_gradients(fused, products.product(dy, w2, /*transposed=*/false), gate, up, weight);
    at::Tensor hidden = std::exchange(of_hidden.y, {});
    const RowsOfTokens of_tokens{saved[9], saved[10]};
    const at::Tensor dweight = of_tokens.rows.defined() ? at::zeros_like(weights) : at::empty_like(weights);
    dweight.view(-1).index_copy_(0, order, of_hidden.dweight);
    const auto inputs_of = [products](const at::Tensor& inputs) {
      return products.rows(inputs, Holds::values, kColumns);
    };
    const at::Tensor dw2 = later != nullptr ? at::Tensor() : products.gradient(dy, inputs_of(hidden), w2);
    dy = {};
    if (later == nullptr) hidden.reset();
    const ExpertRows dgate = products.rows(std::exchange(of_hidden.dgate, {}), Holds::gradients, kBoth);
    const ExpertRows dup = products.rows(std::exchange(of_hidden.dup, {}), Holds::gradients, kBoth);
    at::Tensor dw1, dw3;
    const auto add_first_gradients = [=, x = x.detach(), dgate = dgate.by_columns(), dup = dup.by_columns()] {
      const ExpertRows rows = inputs_of(x.index_select(0, token));
      w1.mutable_grad().add_(products.gradient(dgate, rows, w1));
      w3.mutable_grad().add_(products.gradient(dup, rows, w3));
    };
    if (later != nullptr) {
      later->push_back([=, dy = outputs[0]] {
        const ExpertRows of_copies = products.rows(dy.index_select(0, token), Holds::gradients, kColumns);
        w2.mutable_grad().add_(products.gradient(of_copies, inputs_of(hidden), w2));
        add_first_gradients();
      });
    } else if (ctx->saved_data.count("region") > 0) {
      static_cast<TensorRegion&>(*ctx->saved_data["region"].toCapsule()).leave([=](const at::Tensor&) {
        add_first_gradients();
      });
    } else {
      const ExpertRows rows = inputs_of(x.index_select(0, token));
      dw1 = products.gradient(dgate, rows, w1), dw3 = products.gradient(dup, rows, w3);
    }
    const at::Tensor rows = products.product(dgate, w1, /*transposed=*/false)
                                .add_(products.product(dup, w3, /*transposed=*/false));
    return {summed(rows, order, k, of_tokens), dw1, dw3, dw2, dweight, {}, {}, {}};
  }

  static at::Tensor summed(const at::Tensor& rows, const at::Tensor& order, int64_t top_k,
                           const RowsOfTokens& of_tokens) {
    return of_tokens.rows.defined() ? sum_of_rows(rows, of_tokens) : sum_of_copies(rows, order, top_k);
  }
};

// chosen [N, k]: the logits of the choices.
Routing by_choices(const at::Tensor& choices, const at::Tensor& chosen, int64_t experts) {
  const auto precise = chosen.element_size() < 4 ? at::kFloat : chosen.scalar_type();
  const auto [sorted, order] = choices.flatten().sort(/*stable=*/true, 0, /*descending=*/false);
  const at::Tensor each = at::arange(experts, choices.options());
  return {chosen.softmax(1, precise).to(chosen.scalar_type()), order,
          at::searchsorted(sorted, each, /*out_int32=*/true, /*right=*/true), choices};
}

}  // namespace

at::Tensor sum_of_copies(const at::Tensor& rows, const at::Tensor& order, int64_t top_k) {
  at::Tensor by_token = at::empty(rows.sizes(), rows.options()).index_copy_(0, order, rows);
  if (top_k == 1) return by_token;
  return by_token.view({-1, top_k, rows.size(1)}).sum(1);
}

// A bag of an embedding is the sum of some rows of a table, in the order in which they are listed, so that
// the sum does not depend on the order in which threads finish.
at::Tensor sum_of_rows(const at::Tensor& rows, const RowsOfTokens& of_tokens, const at::Tensor& weights) {
  if (rows.size(0) == 0) return at::zeros({of_tokens.begin.numel(), rows.size(1)}, rows.options());
  constexpr int64_t kSum = 0;
  return std::get<0>(at::_embedding_bag_forward_only(
      rows.contiguous(), of_tokens.rows, of_tokens.begin, /*scale_grad_by_freq=*/false, kSum,
      /*sparse=*/false, weights.defined() ? std::optional(weights) : std::nullopt));
}

at::Tensor grouped_product(const at::Tensor& a, const at::Tensor& b, const at::Tensor& ends) {
  if (a.size(0) == 0) return at::zeros({0, b.size(2)}, a.options());  // no token goes to these experts
  if (has_kernel(a, {b.size(1), b.size(2)})) return at::_grouped_mm(a, b, ends);
  const std::vector<int64_t> bound = bounds(ends);
  at::Tensor product = at::empty({a.size(0), b.size(2)}, a.options());
  for (int64_t e = 0; e < b.size(0); ++e) {
    const int64_t begin = bound[e], rows = bound[e + 1] - begin;
    at::Tensor own = product.narrow(0, begin, rows);
    at::mm_out(own, a.narrow(0, begin, rows), b[e]);
  }
  return product;
}

// Sorting the chosen experts is stable, so that the copies for one expert stay in the order of the tokens.
Routing routed(const at::Tensor& logits, int64_t top_k) {
  const auto [chosen, choices] = logits.topk(top_k, 1);
  return by_choices(choices, chosen, logits.size(1));
}

Routing routed_to(const at::Tensor& choices, const at::Tensor& logits) {
  return by_choices(choices, logits.gather(1, choices), logits.size(1));
}

at::Tensor experts(const LayerInput& in, const at::Tensor& w1, const at::Tensor& w3, const at::Tensor& w2,
                   const Routing& routing, const Model* model) {
  return ExpertsFunction::apply(in.x, w1, w3, w2, routing.weights, routing, in.region, model);
}

}  // namespace shardmark
