// Layers by the kernels of this folder: the same mathematics as torch's own, with fewer bytes moved. For bf16
// on the launcher's GPU; float inside. N rows, C channels. Where a shape does not fit a kernel, torch
// computes.
#pragma once

#include <utility>

#include "kernels/launcher.h"

namespace shardmark {

inline constexpr int64_t kMostChannels = 1600;  // of a row that a warp of layer norm holds in registers

// h = x + added ([N, C]; added undefined: x) and its layer norm: h, y. The gradients that come back through
// both meet in one kernel. layer_norm.cu.
std::pair<at::Tensor, at::Tensor> fused_layer_norm(const Kernels& kernels, const at::Tensor& x,
                                                   const at::Tensor& added, const at::Tensor& weight,
                                                   const at::Tensor& bias, double epsilon);

// The sum over rows of [N, C]: [C]. column_sum.cu.
at::Tensor column_sum(const Kernels& kernels, const at::Tensor& x);

// x [N, in] times weight [in, C] plus bias; of the second, GELU (tanh) of that. column_sum.cu in backward.
at::Tensor fused_projection(const Kernels& kernels, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias);
at::Tensor fused_projection_gelu(const Kernels& kernels, const at::Tensor& x, const at::Tensor& weight,
                                 const at::Tensor& bias);

// Of logits [N, stride], contiguous, the first `classes` of each row being no padding, and targets [N]: the
// cross-entropy of each row in float. Its gradient (p - onehot) takes the logits' place. cross_entropy.cu.
at::Tensor softmax_cross_entropy(const Kernels& kernels, const at::Tensor& logits, const at::Tensor& targets,
                                 int64_t classes);

// Flat memory, all equally long: fp32 but for the gradients and the copy, which are bf16.
struct AdamWMemory {
  at::Tensor parameters, gradients, first_moments, second_moments, copy;
};
struct AdamWRates {
  double lr, beta1, beta2, epsilon, weight_decay;
};
// One update, the copy of the parameters, and zeros in place of the gradients. num_updates: a float on the
// device, this update included. divisor: of the gradients, a float on the device; undefined: 1. adamw.cu.
void fused_adamw(const Kernels& kernels, const AdamWMemory& memory, const AdamWRates& rates,
                 const at::Tensor& num_updates, const at::Tensor& divisor);

}  // namespace shardmark
