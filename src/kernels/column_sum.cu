// Sums over the rows of [rows, columns] in bf16: gradients of biases, alone and together with GELU's
// backward.
//
//   column_partials  partial_p = sum over the rows of part p of x
//   gelu_backward    dz = dy gelu'(z), and partial_p of dz;  gelu(z) = z/2 (1 + tanh(u)) = z s,
//                    s = 1 / (1 + exp(-2 u)),  u = k (z + 0.044715 z^3),  k = sqrt(2 / pi),
//                    gelu'(z) = s + 2 z s (1 - s) k (1 + 3 * 0.044715 z^2)
//   column_totals    total = sum over p of partial_p, of [parts, columns] floats, in bf16; or what is there
//                    and that sum, added in float and rounded once
//
// Bytes of an element: column_partials reads 2; gelu_backward reads 4 and writes 2, where torch's kernel and
// the sum after it move 8. The partial sums are small: parts is about what fills the GPU, not rows.
//
// A warp reads 32 packs that lie side by side, 512 bytes where kVector is 8; the 8 warps of a block read
// every 8th row of its part and meet in shared memory. The sum is that of the rounded dz, as at::sum has it.
// Sources: Hendrycks and Gimpel 2016 (GELU); llm.c, matmul_backward_bias (partial sums in float, then a
// second kernel).
#include "kernels/common.cuh"

// value(offset): the pack that starts there, which the columns' sums are of.
template <int kVector, class Value>
__device__ inline void sum_of_part(float* partial, long long rows, long long columns, Value value) {
  __shared__ float sums[8][32 * kVector];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const long long column = (static_cast<long long>(blockIdx.x) * 32 + lane) * kVector;
  float sum[kVector] = {};
  if (column < columns)
    for (long long row = static_cast<long long>(blockIdx.y) * 8 + warp; row < rows;
         row += static_cast<long long>(gridDim.y) * 8) {
      const Pack<kVector> pack = value(row * columns + column);
      for (int i = 0; i < kVector; ++i) sum[i] += pack[i];
    }
  for (int i = 0; i < kVector; ++i) sums[warp][lane * kVector + i] = sum[i];
  __syncthreads();
  for (int i = threadIdx.x; i < 32 * kVector; i += blockDim.x) {
    float total = 0;
    for (int of = 0; of < 8; ++of) total += sums[of][i];
    const long long place = static_cast<long long>(blockIdx.x) * 32 * kVector + i;
    if (place < columns) partial[blockIdx.y * columns + place] = total;
  }
}

// Blocks of 256; grid: columns / (32 kVector), parts. columns: a multiple of kVector. partial [parts,
// columns].
template <int kVector>
__global__ void __launch_bounds__(256)
    column_partials(const Bf16* x, float* partial, long long rows, long long columns) {
  sum_of_part<kVector>(partial, rows, columns, [&](long long at) { return load<kVector>(x + at); });
}

template <int kVector>
__global__ void __launch_bounds__(256) gelu_backward(const Bf16* dy, const Bf16* z, Bf16* dz, float* partial,
                                                     long long rows, long long columns) {
  sum_of_part<kVector>(partial, rows, columns, [&](long long at) {
    const Pack<kVector> d = load<kVector>(dy + at), input = load<kVector>(z + at);
    float out[kVector];
    for (int i = 0; i < kVector; ++i) {
      const float x = input[i], k = 0.7978845608f, cubic = 0.044715f;
      const float s = __fdividef(1, 1 + __expf(-2 * k * (x + cubic * x * x * x)));
      out[i] = d[i] * (s + 2 * x * s * (1 - s) * k * (1 + 3 * cubic * x * x));
    }
    const Pack<kVector> dz_here = rounded(out);
    store(dz + at, dz_here);
    return dz_here;
  });
}

// Blocks of at most 1,024, for 32 columns each: its warps take every n-th part, as few one after the other as
// can be. The first `half` columns go to one tensor, the others to another.
__global__ void __launch_bounds__(1024)
    column_totals(const float* partial, Bf16* first, Bf16* second, long long parts, long long columns,
                  long long half, long long adds) {
  __shared__ float sums[32][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  const long long column = static_cast<long long>(blockIdx.x) * 32 + lane;
  float sum = 0;
  if (column < columns)
    for (long long part = warp; part < parts; part += warps) sum += partial[part * columns + column];
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp > 0 || column >= columns) return;
  for (int of = 1; of < warps; ++of) sum += sums[of][lane];
  Bf16& total = column < half ? first[column] : second[column - half];
  total = to_bf16(adds != 0 ? to_float(total) + sum : sum);
}
