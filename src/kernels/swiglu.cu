// SwiGLU over elements in bf16: y = silu(g) u, silu(g) = g s, s = 1 / (1 + exp(-g)).
//
//   backward  du = dy g s,   dg = dy u s (1 + g (1 - s))
//
// Bytes per element: forward reads g and u and writes y, 6; backward reads dy, g and u and writes dg and du,
// 10. torch's kernels move 10 (silu 4, the product 6) and 22 (silu 4, two products 12, silu's backward 6).
//
// For routed experts each row has a weight r: y = r silu(g) u, and dr is the sum over a row of dy silu(g) u.
// Their backward computes y once more, because it is not kept. Bytes per element: 6 and 12; torch's kernels
// move 14 (silu 4, products 6 and 4) and 44 (silu 4, six products 32, the sum 2, silu's backward 6). Source:
// Shazeer 2020, "GLU Variants Improve Transformer".
#include "kernels/common.cuh"

__device__ inline float sigmoid(float x) { return __fdividef(1, 1 + __expf(-x)); }
// By the same operations in forward and backward.
__device__ inline float weighted_row(float weight, float gated, float up) { return weight * gated * up; }

// Launch with any number of blocks. n is the number of elements, a multiple of kVector.
template <int kVector>
__global__ void __launch_bounds__(256)
    swiglu_forward(const Bf16* gate, const Bf16* up, Bf16* y, long long n) {
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x * kVector;
  for (long long at = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) * kVector; at < n;
       at += stride) {
    const Pack<kVector> g = load<kVector>(gate + at), u = load<kVector>(up + at);
    float out[kVector];
    for (int i = 0; i < kVector; ++i) out[i] = g[i] * sigmoid(g[i]) * u[i];
    store(y + at, rounded(out));
  }
}

template <int kVector>
__global__ void __launch_bounds__(256)
    swiglu_backward(const Bf16* dy, const Bf16* gate, const Bf16* up, Bf16* dgate, Bf16* dup, long long n) {
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x * kVector;
  for (long long at = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) * kVector; at < n;
       at += stride) {
    const Pack<kVector> d = load<kVector>(dy + at), g = load<kVector>(gate + at), u = load<kVector>(up + at);
    float of_gate[kVector], of_up[kVector];
    for (int i = 0; i < kVector; ++i) {
      const float s = sigmoid(g[i]);
      of_up[i] = d[i] * g[i] * s;
      of_gate[i] = d[i] * u[i] * s * (1 + g[i] * (1 - s));
    }
    store(dgate + at, rounded(of_gate));
    store(dup + at, rounded(of_up));
  }
}

// Launch with a block for each row. weight is [rows].
template <int kVector>
__global__ void __launch_bounds__(256) weighted_swiglu_forward(const Bf16* weight, const Bf16* gate,
                                                               const Bf16* up, Bf16* y, long long columns) {
  const long long begin = static_cast<long long>(blockIdx.x) * columns;
  const float r = to_float(weight[blockIdx.x]);
  for (long long column = threadIdx.x * kVector; column < columns; column += blockDim.x * kVector) {
    const long long at = begin + column;
    const Pack<kVector> g = load<kVector>(gate + at), u = load<kVector>(up + at);
    float out[kVector];
    for (int i = 0; i < kVector; ++i) out[i] = weighted_row(r, g[i] * sigmoid(g[i]), u[i]);
    store(y + at, rounded(out));
  }
}

// dgate holds dy before. dweight is [rows].
template <int kVector>
__global__ void __launch_bounds__(256)
    weighted_swiglu_backward(const Bf16* weight, const Bf16* gate, const Bf16* up, Bf16* dgate, Bf16* y,
                             Bf16* dup, Bf16* dweight, long long columns) {
  __shared__ float sums[1][8];
  const long long begin = static_cast<long long>(blockIdx.x) * columns;
  const float r = to_float(weight[blockIdx.x]);
  float of_weight[1] = {0};
  for (long long column = threadIdx.x * kVector; column < columns; column += blockDim.x * kVector) {
    const long long at = begin + column;
    const Pack<kVector> d = load<kVector>(dgate + at), g = load<kVector>(gate + at),
                        u = load<kVector>(up + at);
    float hidden[kVector], of_gate[kVector], of_up[kVector];
    for (int i = 0; i < kVector; ++i) {
      const float s = sigmoid(g[i]), gated = g[i] * s;
      of_weight[0] += d[i] * gated * u[i];
      hidden[i] = weighted_row(r, gated, u[i]);
      of_up[i] = r * d[i] * gated;
      of_gate[i] = r * d[i] * u[i] * s * (1 + g[i] * (1 - s));
    }
    store(y + at, rounded(hidden));
    store(dup + at, rounded(of_up));
    store(dgate + at, rounded(of_gate));
  }
  block_sum(of_weight, sums);
  if (threadIdx.x == 0) dweight[blockIdx.x] = to_bf16(of_weight[0]);
}
