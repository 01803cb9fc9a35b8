// RMS norm, fused with the addition of the residual before it, over rows of C channels in bf16.
//
//   forward   h = x + r (without r: h = x, which is not written)
//             y = h s g,   s = 1 / sqrt(mean(h^2) + epsilon)
//   backward  n = h s,   a = dy g
//             dh = d + s (a - n mean(a n)), where d is the gradient that h has from elsewhere
//             dg = sum over rows of dy n
//
// Bytes per element: forward reads x and r and writes h and y, 8 (without r: 4); backward reads dy, h and d
// and writes dh, 8. torch's kernels move 10 in forward (x + r: 6; the norm: 4), and 16 in backward (dh: 6;
// dg: 4; the addition of d: 6).
//
// A block holds a row in registers, because Llama's rows are too long for a warp. In backward few blocks
// process many rows each: a thread adds up its own columns, and a block writes one row of partial sums, which
// column_totals (column_sum.cu) adds up. All orders are fixed, so results are the same bits in every run.
// Sources: Zhang and Sennrich, NeurIPS 2019 (RMS norm); layer_norm.cu.
#include "kernels/common.cuh"

// Calls body(column, k) for each pack k of this thread, with its first column.
template <int kVector, int kPacks, class Body>
__device__ inline void for_packs_of_row(long long columns, Body body) {
  IN_REGISTERS
  for (int k = 0; k < kPacks; ++k) {
    const long long column = static_cast<long long>(k * blockDim.x + threadIdx.x) * kVector;
    if (column < columns) body(column, k);
  }
}

// Launch with a block for each row. A block has so many threads, a multiple of 32, that kPacks packs of each
// hold a row.
template <int kVector, int kPacks>
__global__ void __launch_bounds__(256)
    rms_norm_forward(const Bf16* x, const Bf16* residual, const Bf16* weight, Bf16* h, Bf16* y, float* rstd,
                     long long columns, float epsilon) {
  __shared__ float sums[8];
  const long long begin = static_cast<long long>(blockIdx.x) * columns;
  Pack<kVector> packs[kPacks] = {};
  float squares = 0;
  for_packs_of_row<kVector, kPacks>(columns, [&](long long column, int k) {
    packs[k] = load<kVector>(x + begin + column);
    if (residual != nullptr) {
      const Pack<kVector> added = load<kVector>(residual + begin + column);
      float both[kVector];
      for (int i = 0; i < kVector; ++i) both[i] = packs[k][i] + added[i];
      store(h + begin + column, packs[k] = rounded(both));
    }
    for (int i = 0; i < kVector; ++i) squares += packs[k][i] * packs[k][i];
  });
  IN_REGISTERS
  for (int k = 0; k < kPacks; ++k) keep_packed(packs[k]);
  const float s = rsqrtf(block_sum(squares, sums) / static_cast<float>(columns) + epsilon);
  for_packs_of_row<kVector, kPacks>(columns, [&](long long column, int k) {
    const Pack<kVector> g = load<kVector>(weight + column);
    float normed[kVector];
    for (int i = 0; i < kVector; ++i) normed[i] = packs[k][i] * s * g[i];
    store(y + begin + column, rounded(normed));
  });
  if (threadIdx.x == 0) rstd[blockIdx.x] = s;
}

// Launch with any number of blocks. partial is [blocks, C]: a block's part of dg. residual is d and may be
// nullptr.
template <int kVector, int kPacks>
__global__ void __launch_bounds__(256)
    rms_norm_backward(const Bf16* dy, const Bf16* h, const Bf16* residual, const Bf16* weight,
                      const float* rstd, Bf16* dh, float* partial, long long rows, long long columns) {
  __shared__ float sums[8];
  float dweight[kPacks * kVector] = {};
  for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
    const long long begin = row * columns;
    const float s = rstd[row];
    Pack<kVector> dys[kPacks] = {}, hs[kPacks] = {};
    float projection = 0;  // sum of a n
    for_packs_of_row<kVector, kPacks>(columns, [&](long long column, int k) {
      const Pack<kVector> g = load<kVector>(weight + column);
      dys[k] = load<kVector>(dy + begin + column);
      hs[k] = load<kVector>(h + begin + column);
      for (int i = 0; i < kVector; ++i) {
        const float n = hs[k][i] * s;
        projection += dys[k][i] * g[i] * n;
        dweight[k * kVector + i] += dys[k][i] * n;
      }
    });
    IN_REGISTERS
    for (int k = 0; k < kPacks; ++k) {
      keep_packed(dys[k]);
      keep_packed(hs[k]);
    }
    projection = block_sum(projection, sums) / static_cast<float>(columns);
    for_packs_of_row<kVector, kPacks>(columns, [&](long long column, int k) {
      const Pack<kVector> g = load<kVector>(weight + column);
      Pack<kVector> elsewhere = {};
      if (residual != nullptr) elsewhere = load<kVector>(residual + begin + column);
      float out[kVector];
      for (int i = 0; i < kVector; ++i)
        out[i] = elsewhere[i] + s * (dys[k][i] * g[i] - hs[k][i] * s * projection);
      store(dh + begin + column, rounded(out));
    });
  }
  for_packs_of_row<kVector, kPacks>(columns, [&](long long column, int k) {
    for (int i = 0; i < kVector; ++i)
      partial[static_cast<long long>(blockIdx.x) * columns + column + i] = dweight[k * kVector + i];
  });
}
