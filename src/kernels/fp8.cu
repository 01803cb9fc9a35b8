// Rounds a matrix x [rows, columns] in bf16 to 8-bit floating point, in one pass both as it is and
// transposed, because a product reads the rows of its left factor and the columns of its right one.
//
//   fp8_largest       the largest magnitude in x, or in each row and in each column
//   fp8_round         code = round(x / scale), scale = largest magnitude / largest number of the type
//   fp8_round_blocks  the same with a scale for each 32 numbers of a row, and of a column: a power of
//                     two that gives the largest of them the largest exponent of the type
//
// Bytes per element: fp8_largest reads 2; the others read 2 and write 1 for each form. torch's operations (a
// copy in float, magnitudes, their maximum, a quotient, a limit, the code, a transposed copy) move more than
// 40.
//
// All kernels take blocks of 256 threads and a grid of columns / 64 x rows / 64, rounded up: a block has a
// tile of 64 x 64 elements, and a thread has 16 adjacent ones of a row. rows and columns are multiples of 16,
// or of 32 for blocks. The magnitudes of floats are compared as integers, which is their order, so that the
// order in which blocks add theirs does not matter. A NaN is larger than all numbers then, as in torch.
// Sources: Micikevicius et al. 2022, "FP8 Formats for Deep Learning", table 1; Open Compute Project,
// "Microscaling Formats (MX) Specification" 1.0, section 6.3, for scales of blocks.
#include "kernels/common.cuh"

constexpr int kSide = 64, kRun = 16;  // of a tile, and of a thread

__device__ inline unsigned larger_bits(unsigned a, unsigned b) { return a > b ? a : b; }
__device__ inline unsigned from_lane(unsigned x, int lanes) {
  return __float_as_uint(__shfl_xor_sync(0xffffffffu, __uint_as_float(x), lanes));
}

// The magnitudes of a thread's elements, as integers. Outside of the matrix they are 0.
struct Magnitudes {
  unsigned of[kRun];
  __device__ Magnitudes(const Bf16* x, long long rows, long long columns, long long row, long long column) {
    IN_REGISTERS
    for (int i = 0; i < kRun; ++i) of[i] = 0;
    if (row >= rows || column >= columns) return;
    IN_REGISTERS
    for (int part = 0; part < kRun / 8; ++part) {
      const Pack<8> pack = load<8>(x + row * columns + column + 8 * part);
      IN_REGISTERS
      for (int i = 0; i < 8; ++i) of[8 * part + i] = __float_as_uint(pack[i]) & 0x7fffffffu;
    }
  }
};

// kByLine: `of_rows` is [rows] and `of_columns` [columns]; else `of_rows` is one number. They are zeros
// before.
template <bool kByLine>
__global__ void __launch_bounds__(256)
    fp8_largest(const Bf16* x, unsigned* of_rows, unsigned* of_columns, long long rows, long long columns) {
  __shared__ unsigned largest[8][kSide];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, quarter = threadIdx.x % 4;
  const long long row = static_cast<long long>(blockIdx.y) * kSide + threadIdx.x / 4;
  const long long column = static_cast<long long>(blockIdx.x) * kSide + quarter * kRun;
  Magnitudes mine(x, rows, columns, row, column);
  unsigned of_row = 0;
  IN_REGISTERS
  for (int i = 0; i < kRun; ++i) of_row = larger_bits(of_row, mine.of[i]);
  if constexpr (kByLine) {
    // The four threads of a row are neighbours. The eight rows of a warp are four threads apart.
    for (int lanes = 1; lanes < 4; lanes *= 2) of_row = larger_bits(of_row, from_lane(of_row, lanes));
    if (quarter == 0 && row < rows) atomicMax(of_rows + row, of_row);
    IN_REGISTERS
    for (int i = 0; i < kRun; ++i) {
      for (int lanes = 4; lanes < 32; lanes *= 2)
        mine.of[i] = larger_bits(mine.of[i], from_lane(mine.of[i], lanes));
      if (lane < 4) largest[warp][quarter * kRun + i] = mine.of[i];
    }
    __syncthreads();
    const long long place = static_cast<long long>(blockIdx.x) * kSide + threadIdx.x;
    if (threadIdx.x >= kSide || place >= columns) return;
    unsigned of_column = 0;
    for (int other = 0; other < 8; ++other) of_column = larger_bits(of_column, largest[other][threadIdx.x]);
    atomicMax(of_columns + place, of_column);
  } else {
    for (int lanes = 16; lanes > 0; lanes /= 2) of_row = larger_bits(of_row, from_lane(of_row, lanes));
    if (lane == 0) largest[warp][0] = of_row;
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int other = 1; other < 8; ++other) of_row = larger_bits(of_row, largest[other][0]);
    atomicMax(of_rows, of_row);
  }
}

// A type of 8 bits: one for the sign, then the exponent, and kMantissa bits of the fraction.
template <int kMantissa>
struct Fp8Type {
  static constexpr int kBias = kMantissa == 3 ? 7 : 15;
  static constexpr float kLargest = kMantissa == 3 ? 448.0f : 57344.0f;
  // A matrix of zeros has a scale that is not zero, so that nothing is divided by zero.
  __device__ static float scale(unsigned largest) {
    const float magnitude = __uint_as_float(largest);
    return (magnitude < 1e-30f ? 1e-30f : magnitude) / kLargest;
  }
  // That of a block. It has 8 bits. A block with a number that is not finite has no scale.
  __device__ static float scale_of_block(unsigned largest) {
    if (largest >= 0x7f800000u) return __uint_as_float(0x7fc00000u);
    constexpr int kLargestExponent = kMantissa == 3 ? 8 : 15;
    const int of_largest = largest == 0 ? -1 : static_cast<int>(largest >> 23) - 127;
    const int exponent = of_largest - kLargestExponent;
    return exponent <= -127 ? 0x1p-127f : __uint_as_float(static_cast<unsigned>(exponent + 127) << 23);
  }
  // Rounds to the nearest number, ties to even; beyond the largest one, to that.
  __device__ static unsigned char code(float x) {
    const unsigned bits = __float_as_uint(x), sign = bits >> 31 << 7;
    if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<unsigned char>(sign | 0x7fu);  // NaN
    float size = __uint_as_float(bits & 0x7fffffffu);
    size = size > kLargest ? kLargest : size;
    // Numbers below the normal ones are multiples of a step. A sum with 2^23 steps rounds to such multiples.
    constexpr float kSmallestNormal = kMantissa == 3 ? 0x1p-6f : 0x1p-14f;
    constexpr float kManySteps = kMantissa == 3 ? 0x1p14f : 0x1p7f;
    if (size < kSmallestNormal) {
      const unsigned steps = __float_as_uint(size + kManySteps) - __float_as_uint(kManySteps);
      return static_cast<unsigned char>(sign | steps);
    }
    constexpr int kDropped = 23 - kMantissa;
    const unsigned exact = __float_as_uint(size);
    const unsigned rounded = exact + ((1u << (kDropped - 1)) - 1) + ((exact >> kDropped) & 1u);
    return static_cast<unsigned char>(sign | ((rounded >> kDropped) - ((127u - kBias) << kMantissa)));
  }
};

struct alignas(16) Codes {
  unsigned char of[kRun];
};

// A tile's codes, which are read by columns. The padding keeps few reads of a column in one bank.
using CodesOfTile = unsigned char[kSide][kSide + 4];

// Writes the codes of a tile to the transposed matrix, when all threads of the block have theirs.
__device__ inline void store_transposed(const CodesOfTile& tile, unsigned char* transposed, long long rows,
                                        long long columns) {
  __syncthreads();
  const int quarter = threadIdx.x % 4, line = threadIdx.x / 4;
  const long long column = static_cast<long long>(blockIdx.x) * kSide + line;
  const long long row = static_cast<long long>(blockIdx.y) * kSide + quarter * kRun;
  if (column >= columns || row >= rows) return;
  Codes own;
  IN_REGISTERS
  for (int i = 0; i < kRun; ++i) own.of[i] = tile[quarter * kRun + i][line];
  *reinterpret_cast<Codes*>(transposed + column * rows + row) = own;
}

// Writes codes [rows, columns] and transposed [columns, rows], or only one of them, where the other is
// nullptr, with the scales of their rows; or one scale for both, if not kByLine. largest_* are those of
// fp8_largest.
template <int kMantissa, bool kByLine>
__global__ void __launch_bounds__(256)
    fp8_round(const Bf16* x, const unsigned* largest_of_rows, const unsigned* largest_of_columns,
              unsigned char* codes, unsigned char* transposed, float* row_scales, float* column_scales,
              long long rows, long long columns) {
  using Type = Fp8Type<kMantissa>;
  __shared__ CodesOfTile tile;
  const int quarter = threadIdx.x % 4, line = threadIdx.x / 4;
  const long long first_row = static_cast<long long>(blockIdx.y) * kSide;
  const long long first_column = static_cast<long long>(blockIdx.x) * kSide;
  const long long row = first_row + line, column = first_column + quarter * kRun;
  const float of_all = kByLine ? 1 : Type::scale(largest_of_rows[0]);
  if (!kByLine && blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) *row_scales = of_all;
  if (row < rows && column < columns) {
    const Pack<8> packs[2] = {load<8>(x + row * columns + column), load<8>(x + row * columns + column + 8)};
    if (codes != nullptr) {
      const float scale = kByLine ? Type::scale(largest_of_rows[row]) : of_all;
      if (kByLine && column == 0) row_scales[row] = scale;
      Codes own;
      IN_REGISTERS
      for (int i = 0; i < kRun; ++i) own.of[i] = Type::code(packs[i / 8][i % 8] / scale);
      *reinterpret_cast<Codes*>(codes + row * columns + column) = own;
    }
    if (transposed != nullptr) {
      IN_REGISTERS
      for (int i = 0; i < kRun; ++i) {
        const float scale = kByLine ? Type::scale(largest_of_columns[column + i]) : of_all;
        if (kByLine && row == 0) column_scales[column + i] = scale;
        tile[line][quarter * kRun + i] = Type::code(packs[i / 8][i % 8] / scale);
      }
    }
  }
  if (transposed != nullptr) store_transposed(tile, transposed, rows, columns);
}

// rows and columns are multiples of 32. Scales are those of blocks: [rows, columns / 32] and [columns, rows /
// 32].
template <int kMantissa>
__global__ void __launch_bounds__(256)
    fp8_round_blocks(const Bf16* x, unsigned char* codes, unsigned char* transposed, float* row_scales,
                     float* column_scales, long long rows, long long columns) {
  using Type = Fp8Type<kMantissa>;
  constexpr int kBlock = 32;
  __shared__ CodesOfTile tile;
  __shared__ unsigned largest[8][kSide];  // of the eight rows of each warp
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int quarter = threadIdx.x % 4, line = threadIdx.x / 4;
  const long long row = static_cast<long long>(blockIdx.y) * kSide + line;
  const long long column = static_cast<long long>(blockIdx.x) * kSide + quarter * kRun;
  const bool is_inside = row < rows && column < columns;
  Pack<8> packs[2] = {};
  if (is_inside) {
    packs[0] = load<8>(x + row * columns + column);
    packs[1] = load<8>(x + row * columns + column + 8);
  }
  const auto magnitude = [&](int i) { return __float_as_uint(packs[i / 8][i % 8]) & 0x7fffffffu; };
  if (codes != nullptr) {
    unsigned most = 0;
    IN_REGISTERS
    for (int i = 0; i < kRun; ++i) most = larger_bits(most, magnitude(i));
    const float scale = Type::scale_of_block(larger_bits(most, from_lane(most, 1)));  // of two threads
    if (is_inside) {
      Codes own;
      IN_REGISTERS
      for (int i = 0; i < kRun; ++i) own.of[i] = Type::code(packs[i / 8][i % 8] / scale);
      *reinterpret_cast<Codes*>(codes + row * columns + column) = own;
      if (quarter % 2 == 0) row_scales[row * (columns / kBlock) + column / kBlock] = scale;
    }
  }
  if (transposed == nullptr) return;
  IN_REGISTERS
  for (int i = 0; i < kRun; ++i) {
    unsigned most = magnitude(i);
    for (int lanes = 4; lanes < 32; lanes *= 2) most = larger_bits(most, from_lane(most, lanes));
    if (lane < 4) largest[warp][quarter * kRun + i] = most;
  }
  __syncthreads();
  const int first_warp = line / kBlock * 4;  // of those that have the block's rows
  IN_REGISTERS
  for (int i = 0; i < kRun; ++i) {
    unsigned most = 0;
    for (int other = 0; other < 4; ++other)
      most = larger_bits(most, largest[first_warp + other][quarter * kRun + i]);
    const float scale = Type::scale_of_block(most);
    tile[line][quarter * kRun + i] = Type::code(packs[i / 8][i % 8] / scale);
    if (is_inside && line % kBlock == 0) column_scales[(column + i) * (rows / kBlock) + row / kBlock] = scale;
  }
  store_transposed(tile, transposed, rows, columns);
}
