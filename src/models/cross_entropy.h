// The output layer of many classes in 16 bits: its products on an aligned number of rows, and its loss
// without a float for every logit. The same mathematics as at::linear and at::cross_entropy_loss, rounded
// otherwise.
#pragma once

#include "models/model.h"

namespace shardmark {

// Rows of a weight that a 16-bit product is fast with: 128 bytes of logits, whole lines of the cache.
inline constexpr int64_t kRowMultiple = 64;

// x [N, in] times weight [classes, in]: logits [N, classes], a view of [N, aligned classes].
at::Tensor aligned_linear(const at::Tensor& x, const at::Tensor& weight, int64_t multiple = kRowMultiple);

// The mean over rows of the cross-entropy of x weight^T against targets [N], in float (in double: of double).
// For bf16 and wider types: fp16 has too few exponents to hold the probabilities of 50,000 classes. fused:
// softmax, loss and gradient of the logits by one kernel, for bf16; nullptr: by torch's. model: whose
// backward may come in two parts, of which the second computes the weight's gradient; nullptr: it comes in
// one.
at::Tensor linear_cross_entropy(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
                                const Kernels& fused = {}, int64_t multiple = kRowMultiple,
                                const Model* model = nullptr);

}  // namespace shardmark
