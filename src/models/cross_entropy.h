// The output layer for many classes in 16 bits: matrix products with an aligned number of rows, and a loss
// without a float for every logit. The mathematics are those of at::linear and at::cross_entropy_loss;
// rounding differs.
#pragma once

#include "models/model.h"

namespace shardmark {

// 16-bit products are fast if the number of a weight's rows is a multiple of this: 128 bytes of logits, which
// is a whole cache line.
inline constexpr int64_t kRowMultiple = 64;

// The product of x [N, in] and weight [classes, in]: logits [N, classes], as a view of [N, aligned classes].
at::Tensor aligned_linear(const at::Tensor& x, const at::Tensor& weight, int64_t multiple = kRowMultiple);

// The mean over rows of the cross-entropy of x weight^T and targets [N], in float (in double for double). For
// bf16 and wider types: the exponents of fp16 do not reach far enough for the probabilities of 50,000
// classes. `fused`: one kernel computes softmax, loss and the gradient of the logits, in bf16; nullptr:
// torch's kernels do. `model`: its backward may come in two parts, and the gradient of the weight is then
// computed in the second; nullptr: backward is in one part.
at::Tensor linear_cross_entropy(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
                                const Kernels& fused = {}, int64_t multiple = kRowMultiple,
                                const Model* model = nullptr);

}  // namespace shardmark
