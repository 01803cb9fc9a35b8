// Softmax cross-entropy of rows of bf16 logits x, and its gradient in their place. Of a row with target t:
//
//   loss = log(sum over j of exp(x_j - M)) + M - x_t,   M = max over j of x_j
//   x_j becomes p_j = exp(x_j - M) / sum;   x_t becomes p_t - 1 = -(sum over j != t of p_j);   padding 0
//
// The sum leaves the target out, whose own term is added where it is needed: so p_t - 1 has a float's
// relative error before it is rounded wherever p_t is (cross_entropy.cpp of models, Note [Rounded
// probabilities]), and the loss where p_t is near to 1.
//
// Bytes of a logit: read 2 and write 2; the second reading of a row, 100 kB of GPT-2's, comes from the L2
// cache where the rows in progress fit into it: blocks are large, so that these are two for each
// multiprocessor, 26 MB on an H100. torch's softmax, sum and gather move 6 and more. Source: Milakov and
// Gimelshein 2018, Online normalizer calculation for softmax: maximum and sum in one pass, a sum being
// rescaled when its maximum grows.
#include "kernels/common.cuh"

// The largest logit so far, and the sum of exponentials relative to it.
struct Softmax {
  float largest, sum;
};
__device__ inline Softmax merged(Softmax a, Softmax b) {
  const float largest = fmaxf(a.largest, b.largest);
  return {largest, a.sum * __expf(a.largest - largest) + b.sum * __expf(b.largest - largest)};
}

// A block of at most 1,024 threads to a row: logits [rows, stride], of which `classes` are no padding; stride
// a multiple of kVector.
template <int kVector>
__global__ void __launch_bounds__(1024)
    softmax_cross_entropy(Bf16* logits, const long long* targets, float* losses, long long classes,
                          long long stride) {
  Bf16* const row = logits + blockIdx.x * stride;
  const long long target = targets[blockIdx.x];
  const float of_target = to_float(row[target]), least = -3.402823466e38f;
  Softmax others = {least, 0};
  for (long long at = static_cast<long long>(threadIdx.x) * kVector; at < classes;
       at += static_cast<long long>(blockDim.x) * kVector) {
    const Pack<kVector> pack = load<kVector>(row + at);
    float value[kVector];
    Softmax own = {least, 0};
    for (int i = 0; i < kVector; ++i) {
      value[i] = at + i < classes && at + i != target ? to_float(pack.at[i]) : least;
      own.largest = fmaxf(own.largest, value[i]);
    }
    for (int i = 0; i < kVector; ++i) own.sum += value[i] == least ? 0 : __expf(value[i] - own.largest);
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
  const float sum = others.sum * __expf(others.largest - largest), own = __expf(of_target - largest);
  const float scale = 1 / (sum + own);
  if (threadIdx.x == 0)
    losses[blockIdx.x] = of_target < largest ? logf(sum + own) + (largest - of_target) : log1pf(sum);
  for (long long at = static_cast<long long>(threadIdx.x) * kVector; at < stride;
       at += static_cast<long long>(blockDim.x) * kVector) {
    Pack<kVector> pack = load<kVector>(row + at);
    for (int i = 0; i < kVector; ++i) {
      const float p = at + i < classes ? __expf(to_float(pack.at[i]) - largest) * scale : 0;
      pack.at[i] = to_bf16(at + i == target ? -sum * scale : p);
    }
    store(row + at, pack);
  }
}
