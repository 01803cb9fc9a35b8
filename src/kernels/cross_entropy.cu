// Softmax cross-entropy of rows of bf16 logits x; the gradient overwrites the logits. For a row with target
// t:
//
//   loss = log(sum over j of exp(x_j - M)) + M - x_t,   M = max over j of x_j
//   x_j becomes p_j = exp(x_j - M) / sum;   x_t becomes p_t - 1 = -(sum over j != t of p_j);   padding 0
//
// Without targets, of a part of the classes, the "loss" is the log-sum-exp of the row, and x_j becomes p_j.
//
// The sum leaves the target out; the target's own term is added where it is needed. So p_t - 1 has the
// relative error of a float before it is rounded, for any p_t (models/cross_entropy.cpp, Note [Rounded
// probabilities]), and so does the loss when p_t is near 1.
//
// Bytes per logit: reads 2 and writes 2. A row of GPT-2's logits, 100 kB, is held in the registers of its
// block: each of 1,024 threads holds kPacks packs of it, all loaded before the first is used. A longer row is
// processed in parts of that size, and is read again for its gradient. torch's softmax, sum and gather move 6
// bytes and more. Operations per logit: two exponentials, of which a multiprocessor computes 16 a clock, and
// about eight others. Source: Milakov and Gimelshein 2018, Online normalizer calculation for softmax: maximum
// and sum in one pass; a sum is rescaled when its maximum grows.
#include "kernels/common.cuh"

constexpr float kLog2E = 1.442695041f;
constexpr Bf16 kNone = {0xf149};  // -1e30, of no logit: its exponential is 0 beside that of any

// The largest logit so far, and the sum of exponentials relative to it.
struct Softmax {
  float largest, sum;
};
__device__ inline Softmax merged(Softmax a, Softmax b) {
  const float largest = fmaxf(a.largest, b.largest);
  return {largest, a.sum * exp2_fast((a.largest - largest) * kLog2E) +
                       b.sum * exp2_fast((b.largest - largest) * kLog2E)};
}

// One block of at most 1,024 threads per row. logits is [rows, stride]; the first `classes` of a row count,
// the rest is padding. stride is a multiple of kVector. Targets are below `classes`: every data source
// refuses others when it reads them. targets is nullptr if there are none.
template <int kVector, int kPacks>
__global__ void __launch_bounds__(1024)
    softmax_cross_entropy(Bf16* logits, const long long* targets, float* losses, int classes, int stride) {
  Bf16* const row = logits + static_cast<long long>(blockIdx.x) * stride;
  const int target = targets == nullptr ? -1 : static_cast<int>(targets[blockIdx.x]);
  const int threads = kPacks > 1 ? 1024 : blockDim.x;
  const float least = to_float(kNone), of_target = target < 0 ? least : to_float(row[target]);
  const auto has_target = [&](int at) { return at <= target && target < at + kVector; };
  const auto place = [&](int part, int k) { return (part + k * threads + threadIdx.x) * kVector; };
  Pack<kVector> held[kPacks] = {};
  const auto load_others = [&](int part) {  // of the target and of padding: none
    IN_REGISTERS for (int k = 0; k < kPacks; ++k) {
      const int at = place(part, k);
      if (at < stride) held[k] = load<kVector>(row + at);
      if (at + kVector > classes || has_target(at))
        for (int i = 0; i < kVector; ++i)
          if (at + i >= classes || at + i == target) held[k].put(i, kNone);
    }
  };
  const int packs = kPacks * threads;  // that are held at once
  Softmax others = {least, 0};
  for (int part = 0; part * kVector < stride; part += packs) {
    load_others(part);
    Pack<kVector> largest = held[0];
    IN_REGISTERS for (int k = 1; k < kPacks; ++k) largest = larger(largest, held[k]);
    Softmax own = {largest[0], 0};
    for (int i = 1; i < kVector; ++i) own.largest = fmaxf(own.largest, largest[i]);
    // If this thread has no logits, its offset is 0: any exponential of kNone relative to 0 is 0. Relative to
    // kNone itself it would be the exponential of a rounding error, 0 or infinite depending on its sign,
    // because the product is exact and the offset is not.
    const float offset = own.largest > least ? own.largest * kLog2E : 0;
    IN_REGISTERS for (int k = 0; k < kPacks; ++k) {
      for (int i = 0; i < kVector; ++i) own.sum += exp2_fast(held[k][i] * kLog2E - offset);
    }
    others = merged(others, own);
  }
  __shared__ Softmax of_warps[32];
  for (int offset = 16; offset > 0; offset /= 2)
    others = merged(others, {__shfl_xor_sync(0xffffffffu, others.largest, offset),
                             __shfl_xor_sync(0xffffffffu, others.sum, offset)});
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = others;
  __syncthreads();  // after it, too, no thread reads for the sum any more, and the row may be written
  others = of_warps[0];
  for (int warp = 1; warp < blockDim.x / 32; ++warp) others = merged(others, of_warps[warp]);

  const float largest = fmaxf(others.largest, of_target);
  const float sum = others.sum * exp2_fast((others.largest - largest) * kLog2E);
  const float own = exp2_fast((of_target - largest) * kLog2E);
  if (threadIdx.x == 0)
    losses[blockIdx.x] = target < 0            ? logf(sum) + largest
                         : of_target < largest ? logf(sum + own) + (largest - of_target)
                                               : log1pf(sum);
  const float offset = largest * kLog2E + log2f(sum + own);  // p = 2^(x log2(e) - offset)
  const Bf16 of_row = to_bf16(-sum / (sum + own));
  for (int part = 0; part * kVector < stride; part += packs) {
    if (packs * kVector < stride) load_others(part);
    IN_REGISTERS for (int k = 0; k < kPacks; ++k) {
      const int at = place(part, k);
      if (at >= stride) continue;
      float p[kVector];
      for (int i = 0; i < kVector; ++i) p[i] = exp2_fast(held[k][i] * kLog2E - offset);
      store(row + at, rounded(p));
      if (has_target(at)) row[target] = of_row;
    }
  }
}
