// The MLPs of a mixture of experts: tokens are sorted by expert, and the MLPs of all experts are grouped
// matrix products (Gale et al. 2022, "MegaBlocks": no token is dropped, and none is padded).
//
// Note [Weights inside]: the router's weight of a choice is applied before w2 instead of after it, which
// gives the same number. In backward, the gradient of a weight is then the product of two tensors that are
// there anyway, and the experts' outputs [N k, C] need not be kept. The copies of x are not kept either;
// backward gathers them again.
#include "models/experts.h"

#include <ATen/ops/_embedding_bag_forward_only.h>

#include <algorithm>

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

// The products of experts, which round their factors first if fp8 is not nullptr. In b each expert's matrix
// has scales of its own.
struct ExpertProducts {
  const Fp8* fp8;

  at::Tensor product(const at::Tensor& a, Holds holds, const at::Tensor& b, const at::Tensor& ends) const {
    if (fp8 == nullptr) return grouped_product(a, b, ends);
    return grouped_product(fp8_rounded(*fp8, a, holds, 1), fp8_rounded(*fp8, b, Holds::values, 1), ends)
        .to(a.scalar_type());
  }
  // a^T b over the rows of each expert.
  at::Tensor gradient(const at::Tensor& a, Holds a_holds, const at::Tensor& b, Holds b_holds,
                      const at::Tensor& ends) const {
    if (fp8 == nullptr) return grouped_gradient(a, b, ends);
    return grouped_gradient(fp8_rounded(*fp8, a, a_holds, 0), fp8_rounded(*fp8, b, b_holds, 0), ends)
        .to(a.scalar_type());
  }
};

// For each copy with weight r: g = w1 x, u = w3 x, h = silu(g) u, and the copy's part of the output is w2
// (r h). Backward, with dh = w2' dy: the gradient of r is dh . h, that of w2 is dy (r h)', and then du = r
// dh silu(g) and dg = r dh u silu'(g), from which follow the gradients of w1, w3 and x. Tensors are reused
// and freed as early as possible, because they are the largest of the block.
struct ExpertsFunction : torch::autograd::Function<ExpertsFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& w1,
                            const at::Tensor& w3, const at::Tensor& w2, const at::Tensor& weights,
                            const Routing& routing, const c10::intrusive_ptr<TensorRegion>& region,
                            const Model* model) {
    if (model != nullptr) keep_model(ctx, *model);
    const at::Tensor &order = routing.order, &ends = routing.ends;
    const RowsOfTokens& of_tokens = routing.of_tokens;
    if (region) ctx->saved_data["region"] = at::IValue::make_capsule(region);
    const int64_t k = weights.size(1);
    at::Tensor rows = x.index_select(0, order.div(k, "floor"));
    const ExpertProducts products{model != nullptr ? fp8_of(*model) : nullptr};
    const at::Tensor gate = products.product(rows, Holds::values, w1.transpose(1, 2), ends);
    const at::Tensor up = products.product(rows, Holds::values, w3.transpose(1, 2), ends);
    rows.reset();
    ctx->save_for_backward({x, w1, w3, w2, weights, order, ends, gate, up, of_tokens.rows, of_tokens.begin});
    const at::Tensor weight = weights.flatten().index_select(0, order).unsqueeze(1);
    const at::Tensor hidden = at::silu(gate).mul_(up).mul_(weight);
    return summed(products.product(hidden, Holds::values, w2.transpose(1, 2), ends), order, k, of_tokens);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& outputs) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &w1 = saved[1], &w3 = saved[2], &w2 = saved[3], &weights = saved[4];
    const at::Tensor &order = saved[5], &ends = saved[6], &gate = saved[7], &up = saved[8];
    const int64_t k = weights.size(1);
    const at::Tensor token = order.div(k, "floor");
    const at::Tensor weight = weights.flatten().index_select(0, order).unsqueeze(1);
    at::Tensor dy = outputs[0].index_select(0, token);
    at::Tensor gated = at::silu(gate), hidden = at::mul(gated, up);
    const ExpertProducts products{ctx->saved_data.count("model") > 0 ? fp8_of(kept_model(ctx)) : nullptr};
    at::Tensor dhidden = products.product(dy, Holds::gradients, w2, ends);
    const RowsOfTokens of_tokens{saved[9], saved[10]};
    const at::Tensor dweight = of_tokens.rows.defined() ? at::zeros_like(weights) : at::empty_like(weights);
    dweight.view(-1).index_copy_(0, order, at::mul(dhidden, hidden).sum(1));
    hidden.mul_(weight);
    DeferredGradients* const later = kept_deferred(ctx);
    const auto gradient = [=](const at::Tensor& of_outputs, const at::Tensor& inputs) {
      return products.gradient(of_outputs, Holds::gradients, inputs, Holds::values, ends);
    };
    const auto add = [=](const at::Tensor& to, const at::Tensor& of_outputs, const at::Tensor& inputs) {
      to.mutable_grad().add_(gradient(of_outputs, inputs));
    };
    const at::Tensor dw2 = later != nullptr ? at::Tensor() : gradient(dy, hidden);
    dy.reset();
    if (later == nullptr) hidden.reset();
    dhidden.mul_(weight);
    const at::Tensor dup = gated.mul_(dhidden), dgate = at::silu_backward(dhidden.mul_(up), gate);
    dhidden.reset();
    at::Tensor dw1, dw3;
    const auto add_first_gradients = [=, x = x.detach()] {
      const at::Tensor rows = x.index_select(0, token);
      add(w1, dgate, rows);
      add(w3, dup, rows);
    };
    if (later != nullptr) {
      later->push_back([=, dy = outputs[0]] {
        add(w2, dy.index_select(0, token), hidden);
        add_first_gradients();
      });
    } else if (ctx->saved_data.count("region") > 0) {
      static_cast<TensorRegion&>(*ctx->saved_data["region"].toCapsule()).leave([=](const at::Tensor&) {
        add_first_gradients();
      });
    } else {
      const at::Tensor rows = x.index_select(0, token);
      dw1 = gradient(dgate, rows), dw3 = gradient(dup, rows);
    }
    const at::Tensor rows = products.product(dgate, Holds::gradients, w1, ends)
                                .add_(products.product(dup, Holds::gradients, w3, ends));
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
  const at::Tensor by_token = at::empty(rows.sizes(), rows.options()).index_copy_(0, order, rows);
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
