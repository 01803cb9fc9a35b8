// RMS norm, and layer norm of long rows, fused with the addition of the residual before it, over rows of C
// channels in bf16.
//
//   forward   h = x + r (without r: h = x, which is not written)
//             y = (h - m) s g + b,   s = 1 / sqrt(mean((h - m)^2) + epsilon)
//   backward  n = (h - m) s,   a = dy g
//             dh = d + s (a - mean(a) - n mean(a n)), where d is the gradient that h has from elsewhere
//             dg = sum over rows of dy n,   db = sum over rows of dy
//
// Layer norm centres a row: m is its mean. For RMS norm m, b and mean(a) are 0, and there is no db.
//
// Bytes per element: forward reads x and r and writes h and y, 8 (without r: 4); backward reads dy, h and d
// and writes dh, 8. torch's kernels move 10 in forward (x + r: 6; the norm: 4), and 16 in backward (dh: 6;
// dg and db: 4; the addition of d: 6).
//
// A block holds a row in registers, because these rows are too long for a warp (layer_norm.cu): its 32
// threads would hold so many columns of a row, of dg and of db that few warps fit on a multiprocessor. In
// backward few blocks process many rows each: a thread adds up its own columns, and a block writes one row of
// partial sums, which column_totals (column_sum.cu) adds up. All orders are fixed, so results are the same
// bits in every run. Sources: Zhang and Sennrich, NeurIPS 2019 (RMS norm); layer_norm.cu.
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
// hold a row. Without kCentres, bias and mean are not used.
template <bool kCentres, int kVector, int kPacks>
__global__ void __launch_bounds__(256)
    row_norm_forward(const Bf16* x, const Bf16* residual, const Bf16* weight, const Bf16* bias, Bf16* h,
                     Bf16* y, float* mean, float* rstd, long long columns, float epsilon) {
  __shared__ float sums[1][8];
  const long long begin = static_cast<long long>(blockIdx.x) * columns;
  const float count = static_cast<float>(columns);
  Pack<kVector> packs[kPacks] = {};
  float sum[1] = {0}, squares[1] = {0}, m = 0;
  for_packs_of_row<kVector, kPacks>(columns, [&](long long column, int k) {
    packs[k] = load<kVector>(x + begin + column);
    if (residual != nullptr) {
      const Pack<kVector> added = load<kVector>(residual + begin + column);
      float both[kVector];
      for (int i = 0; i < kVector; ++i) both[i] = packs[k][i] + added[i];
      store(h + begin + column, packs[k] = rounded(both));
    }
    if constexpr (kCentres)
      for (int i = 0; i < kVector; ++i) sum[0] += packs[k][i];
  });
  IN_REGISTERS
  for (int k = 0; k < kPacks; ++k) keep_packed(packs[k]);
  if constexpr (kCentres) {
    block_sum(sum, sums);
    m = sum[0] / count;
  }
  for_packs_of_row<kVector, kPacks>(columns, [&](long long, int k) {
    for (int i = 0; i < kVector; ++i) squares[0] += (packs[k][i] - m) * (packs[k][i] - m);
  });
  IN_REGISTERS
  for (int k = 0; k < kPacks; ++k) keep_packed(packs[k]);
  block_sum(squares, sums);
  const float s = rsqrtf(squares[0] / count + epsilon);
  for_packs_of_row<kVector, kPacks>(columns, [&](long long column, int k) {
    const Pack<kVector> g = load<kVector>(weight + column);
    Pack<kVector> b = {};
    if constexpr (kCentres) b = load<kVector>(bias + column);
    float normed[kVector];
    for (int i = 0; i < kVector; ++i) normed[i] = (packs[k][i] - m) * s * g[i] + b[i];
    store(y + begin + column, rounded(normed));
  });
  if (threadIdx.x > 0) return;
  if constexpr (kCentres) mean[blockIdx.x] = m;
  rstd[blockIdx.x] = s;
}

// Launch with any number of blocks. partial is [blocks, 2, C], a block's parts of dg and db; without kCentres
// [blocks, C]. residual is d and may be nullptr.
template <bool kCentres, int kVector, int kPacks>
__global__ void __launch_bounds__(256, kPacks == 1   ? 4
                                       : kPacks == 2 ? 3
                                                     : 2)
    row_norm_backward(const Bf16* dy, const Bf16* h, const Bf16* residual, const Bf16* weight,
                      const float* mean, const float* rstd, Bf16* dh, float* partial, long long rows,
                      long long columns) {
  constexpr int kSums = kCentres ? 2 : 1;  // of a n, and of a
  __shared__ float sums[kSums][8];
  float dweight[kPacks * kVector] = {}, dbias[kCentres ? kPacks * kVector : 1] = {};
  for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
    const long long begin = row * columns;
    const float m = kCentres ? mean[row] : 0, s = rstd[row];
    Pack<kVector> dys[kPacks] = {}, hs[kPacks] = {};
    float means[kSums] = {};
    for_packs_of_row<kVector, kPacks>(columns, [&](long long column, int k) {
      const Pack<kVector> g = load<kVector>(weight + column);
      dys[k] = load<kVector>(dy + begin + column);
      hs[k] = load<kVector>(h + begin + column);
      for (int i = 0; i < kVector; ++i) {
        const float n = (hs[k][i] - m) * s, a = dys[k][i] * g[i];
        means[0] += a * n;
        dweight[k * kVector + i] += dys[k][i] * n;
        if constexpr (kCentres) {
          means[1] += a;
          dbias[k * kVector + i] += dys[k][i];
        }
      }
    });
    IN_REGISTERS
    for (int k = 0; k < kPacks; ++k) {
      keep_packed(dys[k]);
      keep_packed(hs[k]);
    }
    block_sum(means, sums);
    for (float& one : means) one /= static_cast<float>(columns);
    for_packs_of_row<kVector, kPacks>(columns, [&](long long column, int k) {
      const Pack<kVector> g = load<kVector>(weight + column);
      Pack<kVector> elsewhere = {};
      if (residual != nullptr) elsewhere = load<kVector>(residual + begin + column);
      float out[kVector];
      for (int i = 0; i < kVector; ++i) {
        const float n = (hs[k][i] - m) * s, a = dys[k][i] * g[i];
        out[i] = elsewhere[i] + s * (a - (kCentres ? means[kSums - 1] : 0) - n * means[0]);
      }
      store(dh + begin + column, rounded(out));
    });
  }
  float* const own = partial + static_cast<long long>(blockIdx.x) * kSums * columns;
  for_packs_of_row<kVector, kPacks>(columns, [&](long long column, int k) {
    for (int i = 0; i < kVector; ++i) {
      own[column + i] = dweight[k * kVector + i];
      if constexpr (kCentres) own[columns + column + i] = dbias[k * kVector + i];
    }
  });
}
