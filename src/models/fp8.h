// Matrix products in 8-bit floating point: both matrices are scaled to the range of the type, rounded to it
// and multiplied, with sums in float. Scales are those of the moment: the largest element of a matrix, or of
// each row or column of it, becomes the largest number of the type. On a GPU without such products, and on
// CPUs, the rounded matrices are multiplied in float, which gives the same up to the order of sums (the
// emulated form). Sources: Micikevicius et al. 2022, "FP8 Formats for Deep Learning", section 3, for the
// types; torchao's float8 training for the choice of scales; Open Compute Project, "Microscaling Formats (MX)
// Specification" 1.0, section 6.3, for scales of blocks.
#pragma once

#include <ATen/ATen.h>

#include <optional>

#include "kernels/fp8_codes.h"
#include "schema/choice.h"

namespace shardmark {

struct Fp8 {
  // What has a scale of its own: the matrix; each row of the left and each column of the right one; or each
  // block of 32 numbers of such a row or column, whose scale is a power of two.
  enum class Scaling { tensor, row, block };
  Scaling scaling;
  at::ScalarType gradients;  // the type of gradients of outputs; all other matrices are e4m3
  Kernels kernels;           // that round matrices on a GPU; nullptr: torch's operations do
};
// The form that a choice of `products` names; none if they are computed in the type of the model.
std::optional<Fp8> fp8_of(const Choice& products);

// What a matrix holds, which decides its type.
enum class Holds { values, gradients };

// A factor of a product, rounded: the rows of the left matrix or the columns of the right one, [lines, K],
// where the product adds up over K. Scales are [], [lines, 1], or one for each block, [lines, blocks], in the
// type of the sums: float, or double if the matrix was.
struct Fp8Factor {
  Fp8Lines lines;
  Holds holds = Holds::values;
};
// The two factors that a matrix [M, K] can be: its rows [M, K], and its columns [K, M].
struct Fp8Matrix {
  Fp8Factor rows, columns;
};

// A product of the device adds up over a multiple of this many numbers.
int64_t fp8_multiple(const Fp8& fp8);
// How many are missing to a multiple.
inline int64_t missing_to(int64_t multiple, int64_t size) { return (multiple - size % multiple) % multiple; }

// The largest magnitudes that scales follow from. By block there are none: rounding finds them.
LargestMagnitudes fp8_largest(const Fp8& fp8, const at::Tensor& x);
// Rounds x [M, K]. What is not wanted is left undefined, and so may be its part of `largest`.
Fp8Matrix fp8_matrix(const Fp8& fp8, const at::Tensor& x, Holds holds, WantedLines wanted,
                     const LargestMagnitudes& largest);

// The product of two factors [M, K] and [N, K]: [M, N] in `type`. Matrices without elements give zeros.
at::Tensor fp8_product(const Fp8& fp8, const Fp8Factor& left, const Fp8Factor& right, at::ScalarType type);

// The same by a product of the device in bf16. The right factor holds values, N is a multiple of 16, and K of
// fp8_multiple(). CPUs have one with a scale for each matrix, which is no faster than the emulated form.
at::Tensor fp8_native_product(const Fp8& fp8, const Fp8Factor& left, const Fp8Factor& right);

// The scales of blocks, [lines, blocks], as such a product reads them: one byte each, an exponent of 2, in
// tiles of 128 lines and 4 blocks. Source: NVIDIA, cuBLAS documentation, "1D Block Scaling Factors Layout".
at::Tensor tiled_exponents(const at::Tensor& scales);

}  // namespace shardmark
