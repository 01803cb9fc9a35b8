// Scales, rounds and multiplies.
#include "models/fp8.h"

#include <ATen/ops/_scaled_mm.h>

#include "device/device.h"

namespace shardmark {
namespace {

constexpr double kLargestE4m3 = 448, kLargestE5m2 = 57344;

at::ScalarType type_of(const Fp8& fp8, Holds holds) {
  return holds == Holds::gradients ? fp8.gradients : at::kFloat8_e4m3fn;
}
double largest_of(at::ScalarType type) { return type == at::kFloat8_e4m3fn ? kLargestE4m3 : kLargestE5m2; }

at::Tensor widened(const at::Tensor& x) { return x.element_size() < 4 ? x.to(at::kFloat) : x; }

struct Rounded {
  at::Tensor values;  // in the type
  at::Tensor scale;   // by which they are multiplied; of a shape that fits to them
};

// A matrix of zeros has a scale that is not zero, so that nothing is divided by zero.
Rounded rounded(const Fp8& fp8, const at::Tensor& x, Holds holds, int64_t dim) {
  constexpr double kTiny = 1e-30;
  const at::ScalarType type = type_of(fp8, holds);
  const double largest = largest_of(type);
  const at::Tensor wide = widened(x);
  at::Tensor most = wide.abs();
  most = fp8.by_row    ? most.amax({dim}, /*keepdim=*/true)
         : x.dim() > 2 ? most.amax({1, 2}, /*keepdim=*/true)
                       : most.amax();
  const at::Tensor scale = most.clamp_min(kTiny).div_(largest);
  return {at::div(wide, scale).clamp_(-largest, largest).to(type), scale};
}

// cuBLAS wants rows of both matrices, the right one of which is stored by columns, in multiples of 16 bytes.
bool is_native(const at::Tensor& a, const at::Tensor& b) {
  constexpr int64_t kMultiple = 16;
  return a.scalar_type() == at::kBFloat16 && has_fp8_products(a.device()) && a.size(1) % kMultiple == 0 &&
         b.size(1) % kMultiple == 0;
}

}  // namespace

std::optional<Fp8> fp8_of(const Choice& products) {
  if (products.name != "fp8") return std::nullopt;
  return Fp8{products.options.at("scaling") == "row",
             products.options.at("gradients") == "e4m3" ? at::kFloat8_e4m3fn : at::kFloat8_e5m2};
}

at::Tensor fp8_rounded(const Fp8& fp8, const at::Tensor& x, Holds holds, int64_t dim) {
  if (x.numel() == 0) return widened(x);
  const auto [values, scale] = rounded(fp8, x, holds, dim);
  return values.to(scale.scalar_type()).mul_(scale);
}

at::Tensor fp8_product(const Fp8& fp8, const Fp8Operand& a, const Fp8Operand& b) {
  const at::Tensor &left = a.matrix, &right = b.matrix;
  if (left.numel() == 0 || right.numel() == 0)
    return at::zeros({left.size(0), right.size(1)}, left.options());
  // Not all of cuBLAS's and CUTLASS's products take e5m2 on the right.
  if (b.holds == Holds::gradients && a.holds == Holds::values)
    return fp8_product(fp8, {right.t(), b.holds}, {left.t(), a.holds}).t();
  return is_native(left, right)
             ? fp8_native_product(fp8, a, b)
             : at::mm(fp8_rounded(fp8, left, a.holds, 1), fp8_rounded(fp8, right, b.holds, 0))
                   .to(left.scalar_type());
}

at::Tensor fp8_native_product(const Fp8& fp8, const Fp8Operand& a, const Fp8Operand& b) {
  const Rounded left = rounded(fp8, a.matrix, a.holds, 1), right = rounded(fp8, b.matrix.t(), b.holds, 1);
  // Sums of gradients are kept in full precision; those of outputs may be rounded to 14 bits on the way.
  const bool is_forward = a.holds == Holds::values && b.holds == Holds::values;
  return at::_scaled_mm(left.values.contiguous(), right.values.contiguous().t(), left.scale,
                        fp8.by_row ? right.scale.t() : right.scale, /*bias=*/std::nullopt,
                        /*scale_result=*/std::nullopt, at::kBFloat16, /*use_fast_accum=*/is_forward);
}

}  // namespace shardmark
