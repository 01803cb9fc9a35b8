// Matrix products in 8-bit floating point: both matrices are scaled to the range of the type, rounded to it
// and multiplied, with sums in float. Scales are those of the moment: the largest element of a matrix, or of
// each row or column of it, becomes the largest number of the type. On a GPU without such products, and on
// CPUs, the rounded matrices are multiplied in float, which gives the same up to the order of sums (the
// emulated form). Sources: Micikevicius et al. 2022, "FP8 Formats for Deep Learning", section 3, for the
// types; torchao's float8 training for the choice of scales.
#pragma once

#include <ATen/ATen.h>

#include <optional>

#include "schema/choice.h"

namespace shardmark {

struct Fp8 {
  bool by_row;               // a scale for each row of the left and each column of the right matrix
  at::ScalarType gradients;  // the type of gradients of outputs; all other matrices are e4m3
};
// The form that a choice of `products` names; none if they are computed in the type of the model.
std::optional<Fp8> fp8_of(const Choice& products);

// What a matrix holds, which decides its type.
enum class Holds { values, gradients };
struct Fp8Operand {
  const at::Tensor& matrix;
  Holds holds;
};

// a [M, K] times b [K, N], in the type of a. Matrices without elements give zeros.
at::Tensor fp8_product(const Fp8& fp8, const Fp8Operand& a, const Fp8Operand& b);

// The same by a product of the device. Its right factor holds values, and both sizes of that are multiples
// of 16. CPUs have one with a scale for each matrix, which is no faster than the emulated form.
at::Tensor fp8_native_product(const Fp8& fp8, const Fp8Operand& a, const Fp8Operand& b);

// x rounded to the type, and scaled back: float, or double if x is. dim: over which a product adds up, so
// that all indices of the other dimensions have scales of their own with Fp8::by_row; without it, one scale
// for all, or one for each index of the first dimension if x has three.
at::Tensor fp8_rounded(const Fp8& fp8, const at::Tensor& x, Holds holds, int64_t dim);

}  // namespace shardmark
