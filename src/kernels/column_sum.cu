// Sums [rows, columns] in bf16 over the rows: gradients of biases, alone or together with the backward of
// GELU.
//
//   column_partials  partial_p = sum over the rows of part p of x
//   gelu_backward    dz = dy gelu'(z), and partial_p of dz;  gelu(z) = z/2 (1 + tanh(u)) = z s,
//                    s = 1 / (1 + exp(-2 u)),  u = k (z + 0.044715 z^3),  k = sqrt(2 / pi),
//                    gelu'(z) = s + 2 z s (1 - s) k (1 + 3 * 0.044715 z^2)
//   joined_partials  z = (a, b, c) next to each other, and partial_p of z, for the gradients of queries, keys
//                    and values, which one product made
//   column_totals    total = sum over p of partial_p, of [parts, columns] floats, in bf16; or what is there
//                    and that sum, added in float and rounded once
//
// Bytes per element: column_partials reads 2; gelu_backward reads 4 and writes 2, while torch's kernel and
// the sum after it move 8; joined_partials reads 2 and writes 2, while a copy and the sum after it move 6.
// The partial sums are small: the number of parts is about what fills the GPU, not the number of rows.
//
// A warp reads 32 adjacent packs, 512 bytes if kVector is 8. The 8 warps of a block read every 8th row of the
// block's part and are added up in shared memory. What is summed is the rounded dz, as at::sum would do.
// Sources: Hendrycks and Gimpel 2016 (GELU); llm.c, matmul_backward_bias (partial sums in float, then a
// second kernel).
#include "kernels/common.cuh"

// value(row, column) returns the pack that starts there; the columns of these packs are summed.
template <int kVector, class Value>
__device__ inline void sum_of_part(float* partial, long long rows, long long columns, Value value) {
  __shared__ float sums[8][32 * kVector];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const long long column = (static_cast<long long>(blockIdx.x) * 32 + lane) * kVector;
  float sum[kVector] = {};
  if (column < columns)
    for (long long row = static_cast<long long>(blockIdx.y) * 8 + warp; row < rows;
         row += static_cast<long long>(gridDim.y) * 8) {
      const Pack<kVector> pack = value(row, column);
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

// Launch with blocks of 256 threads and a grid of columns / (32 kVector) x parts. `columns` must be a
// multiple of kVector. `partial` is [parts, columns].
template <int kVector>
__global__ void __launch_bounds__(256)
    column_partials(const Bf16* x, float* partial, long long rows, long long columns) {
  sum_of_part<kVector>(partial, rows, columns, [&](long long row, long long column) {
    return load<kVector>(x + row * columns + column);
  });
}

template <int kVector>
__global__ void __launch_bounds__(256) gelu_backward(const Bf16* dy, const Bf16* z, Bf16* dz, float* partial,
                                                     long long rows, long long columns) {
  sum_of_part<kVector>(partial, rows, columns, [&](long long row, long long column) {
    const long long at = row * columns + column;
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

// a, b and c are [rows, columns / 3] each, and a third of the columns is a multiple of kVector.
template <int kVector>
__global__ void __launch_bounds__(256) joined_partials(const Bf16* a, const Bf16* b, const Bf16* c, Bf16* z,
                                                       float* partial, long long rows, long long columns) {
  const long long third = columns / 3;
  sum_of_part<kVector>(partial, rows, columns, [&](long long row, long long column) {
    const Bf16* const from = column < third ? a : column < 2 * third ? b : c;
    const Pack<kVector> pack = load<kVector>(from + row * third + column % third);
    store(z + row * columns + column, pack);
    return pack;
  });
}

// Launch with blocks of at most 1,024 threads, one block for 32 columns. Warp w of n adds up parts w, w + n,
// w + 2n ..., so that few additions follow each other. The first `half` columns go to one tensor, the others
// to another. If `adds` is set, the totals are added to what is there. `precise` gets the totals in float,
// unless it is nullptr.
__global__ void __launch_bounds__(1024)
    column_totals(const float* partial, Bf16* first, Bf16* second, float* precise, long long parts,
                  long long columns, long long half, long long adds) {
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
  if (precise != nullptr) precise[column] = sum;
  Bf16& total = column < half ? first[column] : second[column - half];
  total = to_bf16(adds != 0 ? to_float(total) + sum : sum);
}
