// Patterns: integers that every dtype adds up exactly, and what their reductions give.
#include "comm/pattern.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "comm/collectives.h"

namespace shardmark {
namespace {

// A prime: no chunk or shard boundary falls on a multiple of it, so misplaced data shows.
constexpr int64_t kPeriod = 4099;
constexpr int kFirstOctave = 32;

int value_at(int rank, int64_t position) {
  if (rank < kFirstOctave) {
    const uint64_t mixed =
        (static_cast<uint64_t>(position) * 2654435761U) ^ (static_cast<uint64_t>(rank) * 40503U << 7);
    return static_cast<int>((mixed * 0x9E3779B97F4A7C15U >> 40) % 5) - 2;
  }
  const int octave =
      std::bit_width(static_cast<unsigned>(rank / kFirstOctave)) - 1;  // 32..63: 0, 64..127: 1, ...
  const int64_t spacing = int64_t{2} << octave;
  if ((rank + position) % spacing != 0) return 0;
  return (rank + position) / spacing % 2 == 0 ? 1 : -1;
}

// numel values of value(position), which repeats after a period. In float64 until the last rounding.
at::Tensor tiled(int64_t numel, at::ScalarType dtype, int64_t round,
                 const std::function<double(int64_t)>& value) {
  const int64_t length = std::clamp<int64_t>(numel, 1, kPeriod);
  const at::Tensor period = at::empty({length}, at::kDouble);
  for (int64_t i = 0; i < length; ++i) period.data_ptr<double>()[i] = value((i + 911 * round) % kPeriod);
  return period.to(dtype).repeat({(numel + length - 1) / length}).narrow(0, 0, numel).contiguous();
}

double combine(double a, double b, ReduceOp op) {
  switch (op) {
    case ReduceOp::min:
      return std::min(a, b);
    case ReduceOp::max:
      return std::max(a, b);
    default:
      return a + b;
  }
}

}  // namespace

at::Tensor pattern(int rank, int64_t numel, at::ScalarType dtype, int64_t round) {
  return tiled(numel, dtype, round, [rank](int64_t position) { return value_at(rank, position); });
}

at::Tensor reduced_pattern(int num_ranks, int64_t numel, at::ScalarType dtype, int64_t round, ReduceOp op) {
  return tiled(numel, dtype, round, [num_ranks, op](int64_t position) {
    double value = value_at(0, position);
    for (int rank = 1; rank < num_ranks; ++rank) value = combine(value, value_at(rank, position), op);
    return op == ReduceOp::average ? value / num_ranks : value;
  });
}

}  // namespace shardmark
