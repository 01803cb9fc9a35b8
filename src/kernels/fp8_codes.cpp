// Launches the kernels of fp8.cu over tiles of a matrix.
#include "kernels/fp8_codes.h"

#include <fmt/format.h>

#include "base/error.h"

namespace shardmark {
namespace {

constexpr int64_t kTile = 64, kThreadsOfTile = 256, kMultiple = 16;
constexpr int64_t kMostTiles = 65535;  // of a grid in y

std::array<int64_t, 2> tiles_of(const at::Tensor& x) {
  return {(x.size(1) + kTile - 1) / kTile, (x.size(0) + kTile - 1) / kTile};
}

int mantissa_bits(at::ScalarType type) {
  ENSURE(type == at::kFloat8_e4m3fn || type == at::kFloat8_e5m2, "not a type of 8 bits");
  return type == at::kFloat8_e4m3fn ? 3 : 2;
}

void* memory(const at::Tensor& tensor) { return tensor.defined() ? tensor.data_ptr() : nullptr; }

}  // namespace

bool fits_fp8_kernels(const at::Tensor& x) {
  return x.dim() == 2 && x.numel() > 0 && x.scalar_type() == at::kBFloat16 && x.is_contiguous() &&
         x.size(0) % kMultiple == 0 && x.size(1) % kMultiple == 0 && x.size(0) <= kMostTiles * kTile &&
         reinterpret_cast<uintptr_t>(x.data_ptr()) % kMultiple == 0;
}

bool fits_fp8_blocks(const at::Tensor& x) {
  return fits_fp8_kernels(x) && x.size(0) % kFp8Block == 0 && x.size(1) % kFp8Block == 0;
}

LargestMagnitudes largest_magnitudes(const Kernels& kernels, const at::Tensor& x, bool by_line) {
  const int64_t rows = x.size(0), columns = x.size(1);
  const auto floats = x.options().dtype(at::kFloat);
  LargestMagnitudes largest;
  if (by_line) {
    const at::Tensor both = at::zeros({rows + columns, 1}, floats);
    largest = {both.narrow(0, 0, rows), both.narrow(0, rows, columns)};
  } else {
    largest.of_rows = largest.of_columns = at::zeros({}, floats);
  }
  (*kernels)({"fp8.cu", fmt::format("fp8_largest<{}>", by_line), tiles_of(x), kThreadsOfTile}, memory(x),
             memory(largest.of_rows), memory(largest.of_columns), rows, columns);
  return largest;
}

Fp8Codes fp8_codes(const Kernels& kernels, const at::Tensor& x, at::ScalarType type,
                   const LargestMagnitudes& largest, WantedLines wanted) {
  const at::Tensor& asked = wanted.rows ? largest.of_rows : largest.of_columns;
  const bool by_line = asked.dim() > 0;
  const int64_t rows = x.size(0), columns = x.size(1);
  const auto codes = x.options().dtype(type);
  Fp8Codes result;
  if (wanted.rows) result.rows = {at::empty({rows, columns}, codes), at::empty_like(largest.of_rows)};
  if (wanted.columns)
    result.columns = {at::empty({columns, rows}, codes),
                      by_line || !wanted.rows ? at::empty_like(largest.of_columns) : result.rows.scale};
  // One scale for all is where those of rows are.
  const at::Tensor& of_all = wanted.rows ? result.rows.scale : result.columns.scale;
  (*kernels)(
      {"fp8.cu", fmt::format("fp8_round<{}, {}>", mantissa_bits(type), by_line), tiles_of(x), kThreadsOfTile},
      memory(x), memory(by_line ? largest.of_rows : asked), memory(largest.of_columns),
      memory(result.rows.codes), memory(result.columns.codes), memory(by_line ? result.rows.scale : of_all),
      memory(result.columns.scale), rows, columns);
  return result;
}

Fp8Codes fp8_codes_of_blocks(const Kernels& kernels, const at::Tensor& x, at::ScalarType type,
                             WantedLines wanted) {
  const int64_t rows = x.size(0), columns = x.size(1);
  const auto lines_of = [&](bool is_wanted, int64_t lines, int64_t size) {
    if (!is_wanted) return Fp8Lines{};
    return Fp8Lines{at::empty({lines, size}, x.options().dtype(type)),
                    at::empty({lines, size / kFp8Block}, x.options().dtype(at::kFloat))};
  };
  Fp8Codes result{lines_of(wanted.rows, rows, columns), lines_of(wanted.columns, columns, rows)};
  (*kernels)(
      {"fp8.cu", fmt::format("fp8_round_blocks<{}>", mantissa_bits(type)), tiles_of(x), kThreadsOfTile},
      memory(x), memory(result.rows.codes), memory(result.columns.codes), memory(result.rows.scale),
      memory(result.columns.scale), rows, columns);
  return result;
}

}  // namespace shardmark
