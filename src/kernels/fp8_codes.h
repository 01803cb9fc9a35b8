// Matrices in 8-bit floating point, by the kernels of fp8.cu: the codes of their elements, row by row or
// column by column, and what these are multiplied by.
#pragma once

#include "kernels/launcher.h"

namespace shardmark {

// The largest magnitudes in a matrix [M, K]: [M, 1] of its rows and [K, 1] of its columns, or one number, [],
// which is in both.
struct LargestMagnitudes {
  at::Tensor of_rows, of_columns;
};

// Lines of a matrix, and the scales by which their codes are multiplied: [lines, 1], or [] for all, or one
// for each block of 32 codes, [lines, blocks].
struct Fp8Lines {
  at::Tensor codes, scale;
};
struct Fp8Codes {
  Fp8Lines rows, columns;  // [M, K], and the transposed matrix, [K, M]
};

// Whether the kernels take the matrix: bf16, contiguous, and both sizes are multiples of 16, with at most
// four million rows.
bool fits_fp8_kernels(const at::Tensor& x);

// The same for scales of blocks: both sizes are multiples of a block.
inline constexpr int64_t kFp8Block = 32;
bool fits_fp8_blocks(const at::Tensor& x);

// Largest magnitudes of all rows and columns (by_line), or of the matrix.
LargestMagnitudes largest_magnitudes(const Kernels& kernels, const at::Tensor& x, bool by_line);

struct WantedLines {
  bool rows, columns;
};
// Rounds x to `type`, float8_e4m3fn or float8_e5m2. `largest` is of the same form. What is not wanted is left
// undefined.
Fp8Codes fp8_codes(const Kernels& kernels, const at::Tensor& x, at::ScalarType type,
                   const LargestMagnitudes& largest, WantedLines wanted);
// The same with scales of blocks.
Fp8Codes fp8_codes_of_blocks(const Kernels& kernels, const at::Tensor& x, at::ScalarType type,
                             WantedLines wanted);

}  // namespace shardmark
