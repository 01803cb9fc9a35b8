// Scales, rounds and multiplies.
#include "models/fp8.h"

#include <ATen/ops/_scaled_mm.h>

#include <map>
#include <string>

#include "device/device.h"

namespace shardmark {
namespace {

// The largest numbers of the types, which are 1.75 times 2 to the power of their largest exponent.
constexpr double kLargestE4m3 = 448, kLargestE5m2 = 57344;
constexpr int64_t kLargestExponentE4m3 = 8, kLargestExponentE5m2 = 15;
constexpr int64_t kPack = 16;  // numbers of 8 bits that cuBLAS reads at once

at::ScalarType type_of(const Fp8& fp8, Holds holds) {
  return holds == Holds::gradients ? fp8.gradients : at::kFloat8_e4m3fn;
}
double largest_of(at::ScalarType type) { return type == at::kFloat8_e4m3fn ? kLargestE4m3 : kLargestE5m2; }

at::Tensor widened(const at::Tensor& x) { return x.element_size() < 4 ? x.to(at::kFloat) : x; }

// `largest` has a shape that fits to x. A matrix of zeros has a scale that is not zero, so that nothing is
// divided by zero. The limit is a tensor, because torch's GPU kernels multiply by the reciprocal of a number,
// which may have another last bit than a quotient.
Fp8Lines rounded(const at::Tensor& x, at::ScalarType type, const at::Tensor& largest) {
  constexpr double kTiny = 1e-30;
  const double limit = largest_of(type);
  const at::Tensor scale = largest.clamp_min(kTiny).div_(at::full({}, limit, largest.options()));
  return {at::div(widened(x), scale).clamp_(-limit, limit).to(type), scale};
}

// Rounds blocks of numbers along the last dimension, the last of which may be shorter. A scale is the power
// of two by which the block's largest number gets the type's largest exponent. Numbers above the type's
// largest one become that one. A block with a number that is not finite has no scale.
Fp8Lines rounded_by_block(const at::Tensor& x, at::ScalarType type) {
  constexpr int64_t kLeastExponent = -127, kMostExponent = 127, kNoExponent = 255;  // of a scale, in 8 bits
  const int64_t size = x.size(-1);
  const at::Tensor blocks =
      at::constant_pad_nd(widened(x), {0, missing_to(kFp8Block, size)}).unflatten(-1, {-1, kFp8Block});
  const at::Tensor most = blocks.abs().amax({-1}, /*keepdim=*/true);
  const int64_t largest = type == at::kFloat8_e4m3fn ? kLargestExponentE4m3 : kLargestExponentE5m2;
  // frexp gives a fraction from 0.5 on. A power of two is exact as a number of 8 bits, of which the last is
  // none.
  const at::Tensor exponent = std::get<1>(at::frexp(most))
                                  .sub(1 + largest)
                                  .clamp_(kLeastExponent, kMostExponent)
                                  .sub_(kLeastExponent);
  const at::Tensor scale = at::where(at::isfinite(most), exponent, kNoExponent)
                               .to(at::kByte)
                               .view(at::kFloat8_e8m0fnu)
                               .to(most.scalar_type());
  const double limit = largest_of(type);
  const at::Tensor codes = at::div(blocks, scale).clamp_(-limit, limit).to(type);
  return {codes.flatten(-2).narrow(-1, 0, size), scale.squeeze(-1)};
}

// The numbers that codes stand for.
at::Tensor scaled_back(const Fp8& fp8, const Fp8Lines& lines) {
  const auto& [codes, scale] = lines;
  at::Tensor values =
      codes.to(scale.scalar_type(), /*non_blocking=*/false, /*copy=*/false, at::MemoryFormat::Contiguous);
  if (fp8.scaling != Fp8::Scaling::block) return values.mul_(scale);
  return values.mul_(scale.repeat_interleave(kFp8Block, -1).narrow(-1, 0, codes.size(-1)));
}

bool is_native(const Fp8& fp8, const at::Tensor& left, const at::Tensor& right, at::ScalarType type) {
  return type == at::kBFloat16 && has_fp8_products(left.device(), fp8.scaling == Fp8::Scaling::block) &&
         left.size(1) % fp8_multiple(fp8) == 0 && right.size(0) % kPack == 0;
}

bool has_kernels(const Fp8& fp8, const at::Tensor& x) {
  return fp8.kernels && (fp8.scaling == Fp8::Scaling::block ? fits_fp8_blocks(x) : fits_fp8_kernels(x));
}

}  // namespace

std::optional<Fp8> fp8_of(const Choice& products) {
  if (products.name != "fp8") return std::nullopt;
  static const std::map<std::string, Fp8::Scaling> scalings = {
      {"tensor", Fp8::Scaling::tensor}, {"row", Fp8::Scaling::row}, {"block", Fp8::Scaling::block}};
  return Fp8{scalings.at(products.options.at("scaling").get<std::string>()),
             products.options.at("gradients") == "e4m3" ? at::kFloat8_e4m3fn : at::kFloat8_e5m2,
             {}};
}

int64_t fp8_multiple(const Fp8& fp8) { return fp8.scaling == Fp8::Scaling::block ? kFp8Block : kPack; }

LargestMagnitudes fp8_largest(const Fp8& fp8, const at::Tensor& x) {
  if (x.numel() == 0 || fp8.scaling == Fp8::Scaling::block) return {};
  const bool by_line = fp8.scaling == Fp8::Scaling::row;
  if (has_kernels(fp8, x)) return largest_magnitudes(fp8.kernels, x, by_line);
  const at::Tensor magnitudes = widened(x).abs();
  if (by_line) return {magnitudes.amax({1}, /*keepdim=*/true), magnitudes.amax({0}).unsqueeze(1)};
  const at::Tensor of_all = magnitudes.amax();
  return {of_all, of_all};
}

Fp8Matrix fp8_matrix(const Fp8& fp8, const at::Tensor& x, Holds holds, WantedLines wanted,
                     const LargestMagnitudes& largest) {
  const at::ScalarType type = type_of(fp8, holds);
  Fp8Codes codes;
  if (x.numel() == 0) {
    codes = {{x.to(type), {}}, {x.t().to(type), {}}};
  } else if (has_kernels(fp8, x)) {
    codes = fp8.scaling == Fp8::Scaling::block ? fp8_codes_of_blocks(fp8.kernels, x, type, wanted)
                                               : fp8_codes(fp8.kernels, x, type, largest, wanted);
  } else if (fp8.scaling == Fp8::Scaling::block) {
    if (wanted.rows) codes.rows = rounded_by_block(x, type);
    if (wanted.columns) codes.columns = rounded_by_block(x.t(), type);
  } else {
    if (wanted.rows) codes.rows = rounded(x, type, largest.of_rows);
    const bool are_rows = wanted.rows && fp8.scaling == Fp8::Scaling::tensor;
    if (wanted.columns)
      codes.columns = are_rows ? Fp8Lines{codes.rows.codes.t(), codes.rows.scale}
                               : rounded(x.t(), type, largest.of_columns);
  }
  return {{codes.rows, holds}, {codes.columns, holds}};
}

at::Tensor fp8_product(const Fp8& fp8, const Fp8Factor& left, const Fp8Factor& right, at::ScalarType type) {
  const at::Tensor &a = left.lines.codes, &b = right.lines.codes;
  if (a.numel() == 0 || b.numel() == 0) return at::zeros({a.size(0), b.size(0)}, a.options().dtype(type));
  // Not all of cuBLAS's and CUTLASS's products take e5m2 on the right.
  if (right.holds == Holds::gradients && left.holds == Holds::values)
    return fp8_product(fp8, right, left, type).t();
  if (is_native(fp8, a, b, type)) return fp8_native_product(fp8, left, right);
  return at::mm(scaled_back(fp8, left.lines), scaled_back(fp8, right.lines).t()).to(type);
}

at::Tensor fp8_native_product(const Fp8& fp8, const Fp8Factor& left, const Fp8Factor& right) {
  const bool by_block = fp8.scaling == Fp8::Scaling::block;
  // Sums of gradients are kept in full precision; those of outputs may be rounded to 14 bits on the way,
  // which products with scales of blocks do not offer.
  const bool is_rounded = !by_block && left.holds == Holds::values && right.holds == Holds::values;
  const auto scale_of = [&](const Fp8Factor& factor, bool is_right) {
    const at::Tensor& scale = factor.lines.scale;
    if (by_block) return tiled_exponents(scale);
    return fp8.scaling == Fp8::Scaling::row && is_right ? scale.t() : scale;
  };
  return at::_scaled_mm(left.lines.codes.contiguous(), right.lines.codes.contiguous().t(),
                        scale_of(left, false), scale_of(right, true), /*bias=*/std::nullopt,
                        /*scale_result=*/std::nullopt, at::kBFloat16, /*use_fast_accum=*/is_rounded);
}

// In a tile, the scales of lines l, l + 32, l + 64 and l + 96 are next to each other: 4 x 4 bytes.
at::Tensor tiled_exponents(const at::Tensor& scales) {
  constexpr int64_t kLines = 128, kBlocks = 4, kInterleaved = 32;
  const at::Tensor padded = at::constant_pad_nd(
      scales, {0, missing_to(kBlocks, scales.size(1)), 0, missing_to(kLines, scales.size(0))}, 1);
  return padded.to(at::kFloat8_e8m0fnu)
      .view({-1, kLines / kInterleaved, kInterleaved, padded.size(1) / kBlocks, kBlocks})
      .permute({0, 3, 2, 1, 4})
      .contiguous()
      .flatten();
}

}  // namespace shardmark
