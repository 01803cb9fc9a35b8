// Patterns: integers that every dtype adds up exactly, and what their reductions give.
#include "comm/pattern.h"

#include <algorithm>
#include <bit>

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

// One period as float: sums of at most 256 are exact; float64 gets its average from float64 arithmetic.
at::Tensor tiled(const std::vector<double>& period, int64_t numel, at::ScalarType dtype) {
  const at::Tensor one = at::empty({kPeriod}, at::kDouble);
  std::copy(period.begin(), period.end(), one.data_ptr<double>());
  const int64_t times = (numel + kPeriod - 1) / kPeriod;
  return one.to(dtype).repeat({std::max<int64_t>(times, 1)}).narrow(0, 0, numel).contiguous();
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
  std::vector<double> period;
  for (int64_t i = 0; i < kPeriod; ++i) period.push_back(value_at(rank, (i + 911 * round) % kPeriod));
  return tiled(period, numel, dtype);
}

at::Tensor reduced_pattern(int num_ranks, int64_t numel, at::ScalarType dtype, int64_t round, ReduceOp op) {
  std::vector<double> period;
  for (int64_t i = 0; i < kPeriod; ++i) {
    const int64_t position = (i + 911 * round) % kPeriod;
    double value = value_at(0, position);
    for (int rank = 1; rank < num_ranks; ++rank) value = combine(value, value_at(rank, position), op);
    period.push_back(op == ReduceOp::average ? value / num_ranks : value);
  }
  return tiled(period, numel, dtype);
}

}  // namespace shardmark
