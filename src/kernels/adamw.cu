// AdamW on flat memory in one pass, with fp32 weights p, moments m and v, and bf16 gradients g. The pass also
// writes the bf16 copy of the weights and sets g to zero for the next step. Update t computes:
//
//   m = b1 m + (1 - b1) g,   v = b2 v + (1 - b2) g^2
//   p = p - lr (w p + (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + epsilon)),   copy = p,   g = 0
//
// If there is a divisor, g is divided by it first (gradient clipping: the factor by which the norm is too
// large).
//
// Bytes per parameter: reads g, p, m, v, 14; writes p, m, v, the copy and g, 16. Separate kernels (a copy of
// the gradients to fp32, torch's fused update, a copy of the weights to bf16, the zeroing) move 42 and need 4
// more bytes of memory. Source: Loshchilov and Hutter, ICLR 2019, algorithm 2, with schedule 1 and with the
// learning rate in the weight decay, as torch.optim.AdamW has it.
#include "kernels/common.cuh"

template <int kVector>
struct alignas(kVector > 1 ? 16 : 4) Floats {
  float at[kVector > 4 ? 4 : kVector];
};

// Launch with any number of blocks of 256 threads. n is the number of elements, a multiple of kVector. The
// betas and 1 - betas are computed in double, because in the first updates 1 - b2^t would have few digits in
// float.
template <int kVector>
__global__ void __launch_bounds__(256)
    adamw(float* p, Bf16* g, float* m, float* v, Bf16* copy, const float* num_updates, const float* divisor,
          long long n, double beta1, double beta2, float lr, float decay, float epsilon) {
  __shared__ float of_update[2];
  if (threadIdx.x == 0) {
    const double t = *num_updates;
    of_update[0] = static_cast<float>(lr / (1 - pow(beta1, t)));
    of_update[1] = static_cast<float>(1 / sqrt(1 - pow(beta2, t)));
  }
  __syncthreads();
  const float step = of_update[0], scale = of_update[1], shrink = 1 - lr * decay;
  const float b1 = static_cast<float>(beta1), b2 = static_cast<float>(beta2);
  const float c1 = static_cast<float>(1 - beta1), c2 = static_cast<float>(1 - beta2);
  const float share = divisor == nullptr ? 1 : 1 / *divisor;
  using Part = Floats<kVector>;
  constexpr int kPart = sizeof(Part) / sizeof(float);
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x * kVector;
  for (long long at = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) * kVector; at < n;
       at += stride) {
    const Pack<kVector> gradient = load<kVector>(g + at);
    Part ps[kVector / kPart], ms[kVector / kPart], vs[kVector / kPart];
    for (int k = 0; k < kVector / kPart; ++k) {
      ps[k] = reinterpret_cast<const Part*>(p + at)[k];
      ms[k] = reinterpret_cast<const Part*>(m + at)[k];
      vs[k] = reinterpret_cast<const Part*>(v + at)[k];
    }
    float written[kVector];
    for (int i = 0; i < kVector; ++i) {
      float &weight = ps[i / kPart].at[i % kPart], &first = ms[i / kPart].at[i % kPart],
            &second = vs[i / kPart].at[i % kPart];
      const float slope = gradient[i] * share;
      first = b1 * first + c1 * slope;
      second = b2 * second + c2 * slope * slope;
      weight = shrink * weight - step * first / (sqrtf(second) * scale + epsilon);
      written[i] = weight;
    }
    for (int k = 0; k < kVector / kPart; ++k) {
      reinterpret_cast<Part*>(p + at)[k] = ps[k];
      reinterpret_cast<Part*>(m + at)[k] = ms[k];
      reinterpret_cast<Part*>(v + at)[k] = vs[k];
    }
    store(copy + at, rounded(written));
    store(g + at, Pack<kVector>{});
  }
}
