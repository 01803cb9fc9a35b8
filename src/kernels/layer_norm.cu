// Layer norm, fused with the addition of the residual before it, over rows of C = kColumns channels in bf16.
//
//   forward   h = x + r (without r: h = x, which is not written)
//             y = (h - m) s g + b,   m = mean(h),   s = 1 / sqrt(mean((h - m)^2) + epsilon)
//   backward  n = (h - m) s,   a = dy g
//             dh = d + s (a - mean(a) - n mean(a n)), where d is the gradient that h has from elsewhere
//             dg = sum over rows of dy n,   db = sum over rows of dy
//
// Bytes per element: forward reads x and r and writes h and y, 8 (without r: 4); backward reads dy, h and d
// and writes dh, 8. torch's kernels move 10 in forward (x + r: 6; the norm: 4), and 16 in backward (dh: 6; dg
// and db: 4; the addition of d: 6).
//
// A warp holds a row in registers, so that each element is read once. The sums over rows are computed in two
// stages. In backward few blocks process many rows each: a thread adds up its own columns in registers, the
// warps of a block are added one after the other in shared memory, and a block writes one row of partial
// sums. column_totals (column_sum.cu) adds those up. All orders are fixed, so results are the same bits in
// every run. Sources: Apex's and llm.c's layer norms (a warp per row); Triton's tutorial 5 (partial sums of
// dg and db).
#include "kernels/common.cuh"

// The number of elements of a row that one thread of its warp holds.
template <int kColumns, int kVector>
constexpr int kOfThread = (kColumns / kVector + 31) / 32 * kVector;

// Calls body(column, slot) for each pack of this thread, with its first column and its index in the thread's
// registers.
template <int kColumns, int kVector, class Body>
__device__ inline void for_packs(Body body) {
  const int lane = threadIdx.x % 32;
  IN_REGISTERS for (int k = 0; k < kOfThread<kColumns, kVector> / kVector;
                    ++k) if (const int pack = lane + 32 * k; pack < kColumns / kVector)
      body(pack * kVector, k * kVector);
}

template <int kColumns, int kVector>
__global__ void __launch_bounds__(256)
    layer_norm_forward(const Bf16* x, const Bf16* residual, const Bf16* weight, const Bf16* bias, Bf16* h,
                       Bf16* y, float* mean, float* rstd, long long rows, float epsilon) {
  const long long row = static_cast<long long>(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
  if (row >= rows) return;  // the same for all threads of a warp
  const long long begin = row * kColumns;
  float value[kOfThread<kColumns, kVector>] = {};
  float sum = 0, squares = 0;
  for_packs<kColumns, kVector>([&](int column, int slot) {
    Pack<kVector> pack = load<kVector>(x + begin + column);
    if (residual != nullptr) {
      const Pack<kVector> added = load<kVector>(residual + begin + column);
      float both[kVector];
      for (int i = 0; i < kVector; ++i) both[i] = pack[i] + added[i];
      store(h + begin + column, pack = rounded(both));
    }
    for (int i = 0; i < kVector; ++i) sum += value[slot + i] = pack[i];
  });
  const float m = warp_sum(sum) / kColumns;
  for_packs<kColumns, kVector>([&](int, int slot) {
    for (int i = 0; i < kVector; ++i) squares += (value[slot + i] - m) * (value[slot + i] - m);
  });
  const float s = rsqrtf(warp_sum(squares) / kColumns + epsilon);
  for_packs<kColumns, kVector>([&](int column, int slot) {
    const Pack<kVector> g = load<kVector>(weight + column), b = load<kVector>(bias + column);
    float normed[kVector];
    for (int i = 0; i < kVector; ++i) normed[i] = (value[slot + i] - m) * s * g[i] + b[i];
    store(y + begin + column, rounded(normed));
  });
  if (threadIdx.x % 32 == 0) {
    mean[row] = m;
    rstd[row] = s;
  }
}

// partial is [blocks, 2, C]: a block's parts of dg and db. residual is d and may be nullptr.
template <int kColumns, int kVector>
__global__ void __launch_bounds__(256, (kOfThread<kColumns, kVector>) <= 24 ? 2 : 1)
    layer_norm_backward(const Bf16* dy, const Bf16* h, const Bf16* residual, const Bf16* weight,
                        const float* mean, const float* rstd, Bf16* dh, float* partial, long long rows) {
  constexpr int kOwn = kOfThread<kColumns, kVector>;
  constexpr bool kHoldsThree = kOwn <= 24;  // enough registers for dy, h and d of a row
  const int warps = blockDim.x / 32, warp = threadIdx.x / 32;
  float dweight[kOwn] = {}, dbias[kOwn] = {};
  for (long long row = static_cast<long long>(blockIdx.x) * warps + warp; row < rows;
       row += static_cast<long long>(gridDim.x) * warps) {
    const long long begin = row * kColumns;
    const float m = mean[row], s = rstd[row];
    Pack<kVector> dys[kOwn / kVector], hs[kOwn / kVector], elsewhere[kOwn / kVector] = {};
    const auto load_residual = [&](int column, int slot) {
      if (residual != nullptr) elsewhere[slot / kVector] = load<kVector>(residual + begin + column);
    };
    if constexpr (kHoldsThree) for_packs<kColumns, kVector>(load_residual);
    float sum = 0, projection = 0;  // sums of a, and of a n
    for_packs<kColumns, kVector>([&](int column, int slot) {
      const Pack<kVector> g = load<kVector>(weight + column);
      const Pack<kVector> d = dys[slot / kVector] = load<kVector>(dy + begin + column);
      const Pack<kVector> x = hs[slot / kVector] = load<kVector>(h + begin + column);
      for (int i = 0; i < kVector; ++i) {
        const float n = (x[i] - m) * s, a = d[i] * g[i];
        sum += a;
        projection += a * n;
        dweight[slot + i] += d[i] * n;
        dbias[slot + i] += d[i];
      }
    });
    IN_REGISTERS for (int k = 0; k < kOwn / kVector; ++k) {
      keep_packed(dys[k]);
      keep_packed(hs[k]);
    }
    sum = warp_sum(sum) / kColumns;
    projection = warp_sum(projection) / kColumns;
    for_packs<kColumns, kVector>([&](int column, int slot) {
      const Pack<kVector> g = load<kVector>(weight + column), d = dys[slot / kVector], x = hs[slot / kVector];
      float out[kVector];
      if constexpr (!kHoldsThree) load_residual(column, slot);
      for (int i = 0; i < kVector; ++i) {
        const float n = (x[i] - m) * s, a = d[i] * g[i];
        out[i] = elsewhere[slot / kVector][i] + s * (a - sum - n * projection);
      }
      store(dh + begin + column, rounded(out));
    });
  }
  __shared__ float sums[2][kColumns];
  for (int turn = 0; turn < warps; ++turn) {
    if (turn == warp)
      for_packs<kColumns, kVector>([&](int column, int slot) {
        for (int i = 0; i < kVector; ++i) {
          sums[0][column + i] = dweight[slot + i] + (turn == 0 ? 0 : sums[0][column + i]);
          sums[1][column + i] = dbias[slot + i] + (turn == 0 ? 0 : sums[1][column + i]);
        }
      });
    __syncthreads();
  }
  for (int i = threadIdx.x; i < 2 * kColumns; i += blockDim.x)
    partial[static_cast<long long>(blockIdx.x) * 2 * kColumns + i] = sums[i / kColumns][i % kColumns];
}
