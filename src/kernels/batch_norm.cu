// Batch norm with the statistics of the micro-batch, fused with what follows it in a residual network: ReLU,
// or the addition of the residual and then ReLU. x is [R, C] in bf16: the pixels of all images as rows, with
// the channels of a pixel next to each other (channels-last format).
//
//   statistics  m = mean over rows of x,   s = 1 / sqrt(mean((x - m)^2) + epsilon)
//               running mean = (1 - momentum) running mean + momentum m, and so the running variance, with
//               the sum of squares divided by R - 1
//   forward     y = relu((x - m) s g + b + r), where r is the residual; or without r; or without both
//   backward    n = (x - m) s,   d = dy where y > 0, else 0 (without ReLU: d = dy)
//               dg = sum over rows of d n,   db = sum over rows of d,   dr = d
//               dx = g s (d - db / R - n dg / R)
//
// Bytes per element, beside those of torch's kernels for the norm, the addition and ReLU:
//
//                             forward                           backward
//   norm                      x, x, y               6 (6)       dy, x; dy, x, dx            10 (10)
//   norm and ReLU             x, x, y               6 (10)      dy, x; dy, x, dx            10 (16)
//   norm, addition and ReLU   x, x, r, y            8 (16)      dy, x, y, d; d, x, dx       14 (16)
//
// Without a residual backward computes the sign of y again from x, which it reads anyway: y would be 2 bytes
// more in each of its two passes. With a residual the sign needs r or y; the next convolution keeps y, so
// that it costs no memory, and the first pass writes d, the gradient of the residual, for the second.
//
// Sums over rows are computed in two stages, with all orders fixed, so that results are the same bits in
// every run. A block's 256 threads are `lanes` packs of columns times 256 / lanes rows, because the widest
// activations have the fewest channels: 64 channels in packs of 8 take 8 lanes, and a warp reads 4 rows. The
// grid divides the rows into parts, which take groups of 256 / lanes rows in turn. A warp, then a block, then
// a small kernel add up. A thread adds up differences from its first row, and their squares, so that a large
// mean cancels nothing: the first row is one of its n rows, so its squared distance from their mean is at
// most their sum of squared deviations, and precision loses a factor of n at most, which is about 100. Means
// and sums of squared deviations of threads, warps and parts are merged by Chan's formula.
//
// Sources: Ioffe and Szegedy, ICML 2015 (batch norm); Chan, Golub and LeVeque, The American Statistician 1983
// (shifted data, merged moments); column_sum.cu (sums in two stages).
#include "kernels/common.cuh"

// How a block's threads lie on the rows and columns.
struct OnRows {
  long long column, first, stride;  // of this thread: first column and row, and rows until its next row
  bool has_columns;
  template <int kVector>
  __device__ static OnRows of_thread(long long columns, int lanes) {
    const long long at_once = blockDim.x / lanes;
    const long long column = (static_cast<long long>(blockIdx.x) * lanes + threadIdx.x % lanes) * kVector;
    return {column, blockIdx.y * at_once + threadIdx.x / lanes, gridDim.y * at_once, column < columns};
  }
  // Calls body(offset) for each pack of this thread.
  template <class Body>
  __device__ void for_packs(long long rows, long long columns, Body body) const {
    if (has_columns)
      for (long long row = first; row < rows; row += stride) body(row * columns + column);
  }
};

// The number of rows of `count` threads, of which the first begins at row `first`, the next at the row after
// it, and each takes every stride-th row.
__device__ inline float num_rows(long long rows, long long stride, long long first, long long count) {
  const long long rest = rows % stride - first;
  return static_cast<float>(rows / stride * count + (rest < 0 ? 0 : rest < count ? rest : count));
}

// Merges the means and sums of squared deviations of `mine` and `others` values (Chan's formula). Either may
// be none.
struct Merge {
  float both, share, product;
  __device__ Merge(float mine, float others)
      : both(mine + others), share(both > 0 ? others / both : 0), product(mine * share) {}
  __device__ void operator()(float& mean, float& squares, float other_mean, float other_squares) const {
    const float difference = other_mean - mean;
    mean += difference * share;
    squares += other_squares + difference * difference * product;
  }
};

// The norm of this thread's columns. Forward and backward compute it by the same operations, so that they
// agree which elements ReLU sets to zero. Weight and bias are read one by one, so that they may lie anywhere
// in a flat memory of parameters.
template <int kVector>
struct NormOfColumns {
  float mean[kVector] = {}, rstd[kVector] = {}, scale[kVector] = {}, shift[kVector] = {};
  __device__ NormOfColumns(const OnRows& at, const float* means, const float* rstds, const Bf16* weight,
                           const Bf16* bias) {
    if (!at.has_columns) return;
    for (int i = 0; i < kVector; ++i) {
      mean[i] = means[at.column + i];
      rstd[i] = rstds[at.column + i];
      scale[i] = rstd[i] * to_float(weight[at.column + i]);
      shift[i] = to_float(bias[at.column + i]);
    }
  }
  __device__ float operator()(int i, float x) const { return fmaf(x - mean[i], scale[i], shift[i]); }
};

// Whether ReLU sets a value to zero: if it is not positive when it is rounded to bf16. A NaN remains.
__device__ inline bool is_cut(float value) { return value <= 0x1p-134f; }

// Launch the kernels over rows with blocks of 256 threads and a grid of columns / (lanes kVector) x parts.
// `lanes` is a power of two up to 32. `columns` must be a multiple of kVector. `partial` is [parts, 2, C]:
// the mean and the sum of squared deviations of the part's rows.
template <int kVector>
__global__ void __launch_bounds__(256)
    batch_norm_moments(const Bf16* x, float* partial, long long rows, long long columns, int lanes) {
  __shared__ float means[8][32 * kVector], squares[8][32 * kVector], counts[8];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const OnRows at = OnRows::of_thread<kVector>(columns, lanes);
  Pack<kVector> origin = {};
  if (at.has_columns && at.first < rows) origin = load<kVector>(x + at.first * columns + at.column);
  float sum[kVector] = {}, square[kVector] = {};
  at.for_packs(rows, columns, [&](long long offset) {
    const Pack<kVector> pack = load<kVector>(x + offset);
    for (int i = 0; i < kVector; ++i) {
      const float difference = pack[i] - origin[i];
      sum[i] += difference;
      square[i] += difference * difference;
    }
  });
  float count = num_rows(rows, at.stride, at.first, 1);
  float mean[kVector], deviations[kVector];
  for (int i = 0; i < kVector; ++i) {
    const float shift = count > 0 ? sum[i] / count : 0;
    mean[i] = origin[i] + shift;
    deviations[i] = fmaxf(square[i] - sum[i] * shift, 0);
  }
  for (int offset = 16; offset >= lanes; offset /= 2) {
    const Merge merge(count, __shfl_xor_sync(0xffffffffu, count, offset));
    for (int i = 0; i < kVector; ++i) {
      const float other_mean = __shfl_xor_sync(0xffffffffu, mean[i], offset);
      merge(mean[i], deviations[i], other_mean, __shfl_xor_sync(0xffffffffu, deviations[i], offset));
    }
    count = merge.both;
  }
  if (lane == 0) counts[warp] = count;
  for (int i = 0; i < kVector; ++i)
    if (lane < lanes) {
      means[warp][lane * kVector + i] = mean[i];
      squares[warp][lane * kVector + i] = deviations[i];
    }
  __syncthreads();
  for (int i = threadIdx.x; i < lanes * kVector; i += blockDim.x) {
    const long long place = static_cast<long long>(blockIdx.x) * lanes * kVector + i;
    if (place >= columns) continue;
    float so_far = counts[0], total_mean = means[0][i], total = squares[0][i];
    for (int of = 1; of < 8; ++of) {
      const Merge merge(so_far, counts[of]);
      merge(total_mean, total, means[of][i], squares[of][i]);
      so_far = merge.both;
    }
    partial[2 * blockIdx.y * columns + place] = total_mean;
    partial[(2 * blockIdx.y + 1) * columns + place] = total;
  }
}

// Merges the moments of all parts, of `at_once` adjacent rows at a time. Launch with blocks of 1,024 threads,
// one block for 32 columns. Warp w merges parts w, w + 32, w + 64 ..., so that few merges follow each other.
// If the momentum is 0, the running statistics are not written.
__global__ void __launch_bounds__(1024)
    batch_norm_statistics(const float* partial, float* mean, float* rstd, Bf16* running_mean,
                          Bf16* running_variance, long long parts, long long rows, long long columns,
                          long long at_once, float momentum, float epsilon) {
  __shared__ float counts[32], means[32][32], deviations[32][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const long long column = static_cast<long long>(blockIdx.x) * 32 + lane;
  float count = 0, m = 0, squares = 0;
  for (long long part = warp; part < parts; part += 32) {
    const Merge merge(count, num_rows(rows, parts * at_once, part * at_once, at_once));
    if (column < columns)
      merge(m, squares, partial[2 * part * columns + column], partial[(2 * part + 1) * columns + column]);
    count = merge.both;
  }
  if (lane == 0) counts[warp] = count;
  means[warp][lane] = m;
  deviations[warp][lane] = squares;
  __syncthreads();
  if (warp > 0 || column >= columns) return;
  for (int of = 1; of < 32; ++of) {
    const Merge merge(count, counts[of]);
    merge(m, squares, means[of][lane], deviations[of][lane]);
    count = merge.both;
  }
  mean[column] = m;
  rstd[column] = rsqrtf(squares / count + epsilon);
  if (momentum == 0) return;
  const auto update = [&](Bf16& running, float here) {
    running = to_bf16((1 - momentum) * to_float(running) + momentum * here);
  };
  update(running_mean[column], m);
  update(running_variance[column], squares / (count - 1));
}

// residual may be nullptr. relu: 0 or 1.
template <int kVector>
__global__ void __launch_bounds__(256)
    batch_norm_forward(const Bf16* x, const Bf16* residual, const Bf16* weight, const Bf16* bias,
                       const float* mean, const float* rstd, Bf16* y, long long rows, long long columns,
                       int lanes, int relu) {
  const OnRows at = OnRows::of_thread<kVector>(columns, lanes);
  const NormOfColumns<kVector> norm(at, mean, rstd, weight, bias);
  at.for_packs(rows, columns, [&](long long offset) {
    const Pack<kVector> in = load<kVector>(x + offset);
    Pack<kVector> added = {};
    if (residual != nullptr) added = load<kVector>(residual + offset);
    float out[kVector];
    for (int i = 0; i < kVector; ++i) {
      const float value = norm(i, in[i]) + added[i];
      out[i] = relu != 0 && is_cut(value) ? 0 : value;
    }
    store(y + offset, rounded(out));
  });
}

// The first pass of backward. y is nullptr if there was no residual; otherwise the pass writes d. `partial`
// is [parts, 2, C]: the part's sums of d n and of d.
template <int kVector>
__global__ void __launch_bounds__(256)
    batch_norm_backward_sums(const Bf16* dy, const Bf16* x, const Bf16* y, const Bf16* weight,
                             const Bf16* bias, const float* mean, const float* rstd, Bf16* d, float* partial,
                             long long rows, long long columns, int lanes, int relu) {
  __shared__ float sums[8][2][32 * kVector];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const OnRows at = OnRows::of_thread<kVector>(columns, lanes);
  const NormOfColumns<kVector> norm(at, mean, rstd, weight, bias);
  float products[kVector] = {}, sum[kVector] = {};
  at.for_packs(rows, columns, [&](long long offset) {
    const Pack<kVector> gradient = load<kVector>(dy + offset), in = load<kVector>(x + offset);
    Pack<kVector> output = {};
    if (y != nullptr) output = load<kVector>(y + offset);
    float kept[kVector];
    for (int i = 0; i < kVector; ++i) {
      const bool cut = relu != 0 && is_cut(y != nullptr ? output[i] : norm(i, in[i]));
      kept[i] = cut ? 0 : gradient[i];
      products[i] += kept[i] * (in[i] - norm.mean[i]);
      sum[i] += kept[i];
    }
    if (y != nullptr) store(d + offset, rounded(kept));
  });
  for (int i = 0; i < kVector; ++i) {
    products[i] *= norm.rstd[i];
    for (int offset = 16; offset >= lanes; offset /= 2) {
      products[i] += __shfl_xor_sync(0xffffffffu, products[i], offset);
      sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], offset);
    }
    if (lane >= lanes) continue;
    sums[warp][0][lane * kVector + i] = products[i];
    sums[warp][1][lane * kVector + i] = sum[i];
  }
  __syncthreads();
  const int own = lanes * kVector;  // columns of the block
  for (int i = threadIdx.x; i < 2 * own; i += blockDim.x) {
    float total = 0;
    for (int of = 0; of < 8; ++of) total += sums[of][i / own][i % own];
    const long long place = static_cast<long long>(blockIdx.x) * own + i % own;
    if (place < columns) partial[(2 * blockIdx.y + i / own) * columns + place] = total;
  }
}

// The second pass. `totals` is [2, C]: the sums of d n and of d over all rows. If there was a residual, dy is
// the d that the first pass wrote, and relu is 0.
template <int kVector>
__global__ void __launch_bounds__(256)
    batch_norm_backward(const Bf16* dy, const Bf16* x, const Bf16* weight, const Bf16* bias,
                        const float* mean, const float* rstd, const float* totals, Bf16* dx, long long rows,
                        long long columns, int lanes, int relu) {
  const OnRows at = OnRows::of_thread<kVector>(columns, lanes);
  const NormOfColumns<kVector> norm(at, mean, rstd, weight, bias);
  float slope[kVector] = {}, offset_of_d[kVector] = {};  // n dg / R = slope (x - m), and db / R
  if (at.has_columns)
    for (int i = 0; i < kVector; ++i) {
      slope[i] = norm.rstd[i] * (totals[at.column + i] / static_cast<float>(rows));
      offset_of_d[i] = totals[columns + at.column + i] / static_cast<float>(rows);
    }
  at.for_packs(rows, columns, [&](long long offset) {
    const Pack<kVector> gradient = load<kVector>(dy + offset), in = load<kVector>(x + offset);
    float out[kVector];
    for (int i = 0; i < kVector; ++i) {
      const float d = relu != 0 && is_cut(norm(i, in[i])) ? 0 : gradient[i];
      out[i] = norm.scale[i] * (d - offset_of_d[i] - (in[i] - norm.mean[i]) * slope[i]);
    }
    store(dx + offset, rounded(out));
  });
}
