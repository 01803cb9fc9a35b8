// The output layer and the loss as one autograd function, with few bytes moved for each logit.
//
// Note [Bytes of a logit]: with GPT-2's vocabulary, the logits are the largest tensor of a step (16 x 1024
// tokens x 50,257: 0.8 billion, 1.65 GB in bf16), and every pass over them costs 0.5 ms per 2 bytes on an
// H100 (3.35 TB/s). Bytes that are read or written per logit, with each kernel counted once:
//   at::cross_entropy_loss in float: product 2; to float 2 + 4; log_softmax 4 + 4; backward of the mean 4; of
//   log_softmax 4 + 4 + 4; to bf16 4 + 2; two products 2 + 2. Together 42, and more where log_softmax and its
//   backward read a row of 200 kB again (up to 8 and 4). At its peak it holds 12 bytes per logit.
//   Here: product 2; softmax 2 + 2 (a row of 100 kB that is read again is still in the L2 cache); sum 2; two
//   products 2 + 2. Together 12, and it holds 2 bytes per logit.
// The softmax computes in float and rounds its results (ATen's SoftMax.cu). It may overwrite its input, as in
// ATen's own attention (native/transformers/attention.cpp, masked_softmax). The gradient of the loss is then
// the probabilities, except for one entry per row. The scale (gradient of the loss / N) is applied to x and
// to the product with the weight instead, which are 65 times smaller than the logits.
//
// Note [Rounded probabilities]: the gradient of the target's logit is p - 1. Computed from a bf16 p near 1,
// it would have no correct digit, because bf16 has no numbers between 1 - 2^-8 and 1. The negative sum of the
// other probabilities is the same number, and its relative error is that of one rounding (2^-9) for every p.
// It costs one more pass over 2 bytes per logit (on a GPU, summing bf16 in float needs no copy:
// native/ReduceOpsUtils.h). Every entry of the gradient is therefore as exact as one that was computed in
// float and rounded. If p is at least 1/2, the loss of a row is computed from the same sum. Otherwise log p
// has an absolute error of at most 2^-9, without bias, which is no more than the error of rounding the logits
// to bf16; the mean over N rows has 1/sqrt(N) of it.
//
// Note [Aligned rows]: 50,257 is odd, so that rows of logits start at odd multiples of 2 bytes. Neither
// 16-byte loads nor the tensor memory accelerator can read such rows, and cuBLAS does not use its fast
// kernels for any of the three products (NVIDIA, Matrix Multiplication Background User's Guide: multiples of
// 64 elements are best). The weight is therefore padded to 50,304 rows in a copy that every forward makes
// anew: 77 MB are filled, read and written in 0.08 ms. On an H100, a step of GPT-2 124M with 16 x 1024 tokens
// takes 26 ms less with 50,304 rows. Parameters, their layout and all formulas know nothing of this padding
// (parts of words of tensor-parallel ranks are whole tiles already: specs/split.cpp).
// Padded logits are -inf, and their probabilities and gradients are 0.
#include "models/cross_entropy.h"

#include <limits>

#include "kernels/fused.h"
#include "models/kept_model.h"

namespace shardmark {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The weight with rows of zeros added at the end, or the weight itself if its number of rows is aligned.
at::Tensor padded_rows(const at::Tensor& weight, int64_t multiple) {
  const int64_t missing = (multiple - weight.size(0) % multiple) % multiple;
  return missing == 0 ? weight : at::constant_pad_nd(weight, {0, 0, 0, missing});
}

// Returns the mean loss. On entry p holds logits [N, aligned classes]; on return it holds their gradient
// without the scale.
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

  // A product of all 50,257 rows at once would use one of cuBLAS's slow kernels: 2.4 ms on an H200, instead
  // of 1.5 ms for the aligned rows and the rest apart.
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
