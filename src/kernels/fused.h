// Layers that use the kernels of this folder. They compute the same as torch's own layers, but move fewer
// bytes. They are for bf16 on the launcher's GPU and compute in float. N is the number of rows, C of
// channels. If a kernel does not support a shape, torch computes.
#pragma once

#include <utility>

#include "kernels/launcher.h"

namespace shardmark {

// Rows of norms may have 8,192 channels, or 1,024 where they cannot be read in packs of 8. For longer ones
// torch computes.
inline constexpr int64_t kMostChannels = 8192;

// Returns h = x + added, both [N, C] (just x if `added` is undefined), and y, the layer norm of h. In
// backward the gradients that arrive for h and for y are added in one kernel. Kernels: layer_norm.cu,
// row_norm.cu.
std::pair<at::Tensor, at::Tensor> fused_layer_norm(const Kernels& kernels, const at::Tensor& x,
                                                   const at::Tensor& added, const at::Tensor& weight,
                                                   const at::Tensor& bias, double epsilon);

// The same with RMS norm. Kernel: row_norm.cu.
std::pair<at::Tensor, at::Tensor> fused_rms_norm(const Kernels& kernels, const at::Tensor& x,
                                                 const at::Tensor& added, const at::Tensor& weight,
                                                 double epsilon);

// silu(gate) up, of [N, I] each. Kernel: swiglu.cu.
at::Tensor fused_swiglu(const Kernels& kernels, const at::Tensor& gate, const at::Tensor& up);

// Rows of silu(gate) up, [M, I], times a weight of each row: weight [M, 1].
at::Tensor fused_weighted_swiglu(const Kernels& kernels, const at::Tensor& gate, const at::Tensor& up,
                                 const at::Tensor& weight);
// Such rows once more, and the gradients of what they are made of, [M, I] and [M], for the gradient dy of the
// rows. dgate takes the memory of dy. Kernels: swiglu.cu.
struct WeightedSwiglu {
  at::Tensor y, dgate, dup, dweight;
};
WeightedSwiglu fused_weighted_swiglu_backward(const Kernels& kernels, const at::Tensor& dy,
                                              const at::Tensor& gate, const at::Tensor& up,
                                              const at::Tensor& weight);

// Rotates the pairs of channels i and i + D/2 of x [B, T, H, D] by the angles of their tokens' positions. cos
// and sin are [positions, 1, D/2]. positions [B, T], int64; undefined: 0, 1, 2 ... Kernel: rotary.cu.
at::Tensor fused_rotary(const Kernels& kernels, const at::Tensor& x, const at::Tensor& cos,
                        const at::Tensor& sin, const at::Tensor& positions);

struct RunningStatistics {
  at::Tensor mean, variance;  // bf16 [C]
  double momentum;            // 0: they stay as they are
};
// Batch norm of x [B, C, H, W], in channels-last format, with the statistics of its pixels, by which it
// updates the running ones. If `relu` is set, ReLU follows it, after the addition of `residual` if that is
// defined. Kernel: batch_norm.cu.
at::Tensor fused_batch_norm(const Kernels& kernels, const at::Tensor& x, const at::Tensor& residual,
                            const at::Tensor& weight, const at::Tensor& bias,
                            const RunningStatistics& running, double epsilon, bool relu);

// Sums [N, C] over the rows to [C]. Kernel: column_sum.cu.
at::Tensor column_sum(const Kernels& kernels, const at::Tensor& x);

// x [N, in] times weight [in, C] plus bias; the second function applies GELU (tanh) to that, and the third
// returns three parts of its columns. Kernels in backward: column_sum.cu.
at::Tensor fused_projection(const Kernels& kernels, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias);
at::Tensor fused_projection_gelu(const Kernels& kernels, const at::Tensor& x, const at::Tensor& weight,
                                 const at::Tensor& bias);
std::vector<at::Tensor> fused_projection_in_three(const Kernels& kernels, const at::Tensor& x,
                                                  const at::Tensor& weight, const at::Tensor& bias);

// Returns the cross-entropy of each row in float. logits is [N, stride], contiguous; only the first `classes`
// of each row count, the rest is padding. targets is [N]. The gradient (p - onehot) overwrites the logits.
// Kernel: cross_entropy.cu.
at::Tensor softmax_cross_entropy(const Kernels& kernels, const at::Tensor& logits, const at::Tensor& targets,
                                 int64_t classes);

// The same for a part of the classes, without targets: returns the log-sum-exp of each row in float, and the
// rows' softmax overwrites the logits; padding becomes 0.
at::Tensor softmax_in_place(const Kernels& kernels, const at::Tensor& logits, int64_t classes);

// Flat memory; all tensors have the same length. Gradients and copy are bf16, the others fp32.
struct AdamWMemory {
  at::Tensor parameters, gradients, first_moments, second_moments, copy;
};
struct AdamWRates {
  double lr, beta1, beta2, epsilon, weight_decay;
};
// Makes one update, writes the bf16 copy of the parameters, and sets the gradients to zero. num_updates is a
// float on the device that includes this update. Gradients are divided by `divisor`, a float on the device;
// undefined means 1. Kernel: adamw.cu.
void fused_adamw(const Kernels& kernels, const AdamWMemory& memory, const AdamWRates& rates,
                 const at::Tensor& num_updates, const at::Tensor& divisor);

}  // namespace shardmark
