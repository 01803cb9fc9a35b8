// Output layer and loss as one autograd function.
//
// Note [Bytes of a logit]: GPT-2's vocabulary makes logits the largest tensor of a step (16 x 1024 tokens x
// 50,257: 0.8 billion, 1.65 GB in bf16), and every pass over them costs 0.5 ms per 2 bytes on an H100
// (3.35 TB/s). Counted as bytes that are read or written per logit, each kernel once:
//   at::cross_entropy_loss of floats: product 2; to float 2 + 4; log_softmax 4 + 4; backward of the mean 4;
//   of log_softmax 4 + 4 + 4; to bf16 4 + 2; two products 2 + 2: 42, more where a row of 200 kB is read again
//   by log_softmax and its backward (up to 8 and 4); at its peak 12 bytes per logit are held.
//   here: product 2; softmax 2 + 2 (a row of 100 kB that is read again is still in the L2 cache); sum 2; two
//   products 2 + 2: 12, and 2 bytes per logit are held.
// The softmax computes in float inside and rounds its results (ATen's SoftMax.cu). It may write over its
// input, as ATen's own attention does it (native/transformers/attention.cpp, masked_softmax). The gradient of
// the loss then is the probabilities but for one entry per row, and the scale (gradient of the loss / N) goes
// to x and to the product with the weight, which are 65 times smaller than the logits.
//
// Note [Rounded probabilities]: p of the target minus 1 would have no digit left where p comes near to 1, as
// bf16 has none between 1 - 2^-8 and 1. The others' sum is the same number, and has a relative error of a
// rounding (2^-9) wherever p is: it costs one more pass over 2 bytes (on a GPU a sum of bf16 in float needs
// no copy: native/ReduceOpsUtils.h). So every entry of the gradient is as exact as one that was computed in
// float and rounded. The loss of a row comes from the same sum where p is at least 1/2; elsewhere log p has
// an absolute error of 2^-9 at most, without bias, which is no more than what rounding the logits to bf16 has
// done already; the mean over N rows has 1/sqrt(N) of it.
//
// Note [Aligned rows]: 50,257 is odd, so that rows of logits start at odd multiples of 2 bytes: neither 16
// byte loads nor the tensor memory accelerator can read them, and cuBLAS leaves its fast kernels for all
// three products (NVIDIA, Matrix Multiplication Background User's Guide: multiples of 64 elements are best).
// Padding lives in a copy of the weight that is made anew in every forward, 50,304 rows: 77 MB filled, read
// and written, 0.08 ms, where GPT-2 124M of 16 x 1024 tokens takes 26 ms less with 50,304 (an H100).
// Parameters, their layout and all formulas know nothing of it. Padded logits are -inf, their probabilities
// and gradients 0.
#include "models/cross_entropy.h"

#include <limits>

#include "kernels/fused.h"
#include "models/kept_model.h"

namespace shardmark {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Zeros below the last row; itself where it is aligned.
at::Tensor padded_rows(const at::Tensor& weight, int64_t multiple) {
  const int64_t missing = (multiple - weight.size(0) % multiple) % multiple;
  return missing == 0 ? weight : at::constant_pad_nd(weight, {0, 0, 0, missing});
}

// The mean loss of p, which are logits [N, aligned classes]; p becomes their gradient, but for the scale.
at::Tensor loss_and_gradient(at::Tensor p, const at::Tensor& targets, int64_t classes) {
  const at::Tensor column = targets.unsqueeze(1);
  p.narrow(1, classes, p.size(1) - classes).fill_(-std::numeric_limits<double>::infinity());
  at::_softmax_out(p, p, 1, /*half_to_float=*/false);

  const auto precise = p.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor of_target = p.gather(1, column).to(precise);
  const at::Tensor of_others = (p.sum(1, /*keepdim=*/true, precise) - of_target).clamp_min(0);
  p.scatter_(1, column, of_others.neg().to(p.scalar_type()));
  const at::Tensor likely = at::log1p(-of_others);
  const at::Tensor unlikely = of_target.clamp_min(std::numeric_limits<float>::min()).log_();
  return at::where(of_target < 0.5, unlikely, likely).mean().neg_();
}

struct LinearCrossEntropy : torch::autograd::Function<LinearCrossEntropy> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& targets, const Kernels& fused, int64_t multiple,
                            const Model* model) {
    if (model != nullptr) keep_model(ctx, *model);
    const int64_t classes = weight.size(0);
    const at::Tensor padded = padded_rows(weight, multiple);
    const at::Tensor logits = at::mm(x, padded.t());
    ctx->saved_data["classes"] = classes;
    at::Tensor loss = fused ? softmax_cross_entropy(fused, logits, targets, classes).mean()
                            : loss_and_gradient(logits, targets, classes);
    ctx->save_for_backward({x, padded, logits, weight});
    ctx->saved_data["adds_gradient"] = fused && fused->adds_gradients;
    return loss;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& outputs) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &padded = saved[1], &gradient = saved[2];
    const at::Tensor scale = outputs[0] / static_cast<double>(x.size(0));
    const at::Tensor dx = at::mm(gradient, padded).mul_(scale);
    const int64_t classes = ctx->saved_data["classes"].toInt();
    if (DeferredGradients* const later = kept_deferred(ctx); later != nullptr) {
      later->push_back([weight = saved[3], gradient, scaled = x * scale, classes] {
        add_gradient(weight.mutable_grad(), gradient, scaled, classes);
      });
      return {dx, {}, {}, {}, {}, {}};
    }
    if (const at::Tensor place = saved[3].grad();
        place.defined() && ctx->saved_data["adds_gradient"].toBool()) {
      add_gradient(place, gradient, x * scale, classes);
      return {dx, {}, {}, {}, {}, {}};
    }
    return {dx, at::mm(gradient.t(), x * scale).narrow(0, 0, classes), {}, {}, {}, {}};
  }

  // 50,257 rows at once would be one of cuBLAS's slow products: 2.4 ms on an H200, and so 1.5.
  static void add_gradient(const at::Tensor& place, const at::Tensor& gradient, const at::Tensor& scaled,
                           int64_t classes) {
    const int64_t last = classes % kRowMultiple;
    for (const auto& [begin, rows] : {std::pair(int64_t{0}, classes - last), {classes - last, last}})
      if (rows > 0) place.narrow(0, begin, rows).addmm_(gradient.narrow(1, begin, rows).t(), scaled);
  }
};

}  // namespace

at::Tensor aligned_linear(const at::Tensor& x, const at::Tensor& weight, int64_t multiple) {
  return at::linear(x, padded_rows(weight, multiple)).narrow(1, 0, weight.size(0));
}

at::Tensor linear_cross_entropy(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
                                const Kernels& fused, int64_t multiple, const Model* model) {
  return LinearCrossEntropy::apply(x, weight, targets, fused, multiple, model);
}

}  // namespace shardmark
