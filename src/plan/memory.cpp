// Checks whether the state of a point fits into the memory of a rank, and suggests a layout in which it
// would.
#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "plan/plan.h"
#include "strategies/strategy.h"

namespace shardmark {
namespace {

// Searches the layouts of the same ranks for one that fits, from the fewest ranks per copy of the model
// upwards, and with as many tensor-parallel ranks as possible before pipeline stages. Returns it as text;
// empty if none fits.
std::string layout_that_fits(const Point& point, double memory_bytes) {
  constexpr int64_t kMostTensor = 8;  // tensor parallelism within a node of 8 ranks
  for (int64_t copy = point.ranks_per_copy() + 1; copy <= point.ranks; ++copy) {
    if (point.ranks % copy != 0 || copy % point.training.context != 0) continue;
    const int64_t parts = copy / point.training.context;
    for (int64_t tensor = std::min(parts, kMostTensor); tensor >= 1; --tensor) {
      Point other = point;
      other.training.tensor = tensor;
      other.training.pipeline = parts / tensor;
      if (other.training.scaling == "strong") other.training.batch_size = point.global_batch();
      if (parts % tensor != 0 || !strategies::layout_impossible(other).empty() ||
          !divide_batch(other).empty() || !strategy_reason(other).empty())
        continue;
      const Expectation needed = expect(other);
      if (needed.total_bytes() > memory_bytes) continue;
      std::string layout = tensor == 1 ? "" : fmt::format("tensor {}", tensor);
      if (other.training.pipeline > 1)
        layout += fmt::format("{}pipeline {}", tensor == 1 ? "" : " x ", other.training.pipeline);
      return fmt::format("{} would fit ({} with activations)", layout, format_bytes(needed.total_bytes()));
    }
  }
  return {};
}

}  // namespace

std::string memory_reason(const Point& point, int64_t memory_per_rank_bytes) {
  const auto memory_bytes = static_cast<double>(memory_per_rank_bytes);
  if (memory_bytes == 0) return {};
  const double needed = expect(point).cost.state_bytes();
  if (needed <= memory_bytes) return {};
  const std::string reason = fmt::format("the state of a rank needs {}, a rank has {}", format_bytes(needed),
                                         format_bytes(memory_bytes));
  const std::string other = layout_that_fits(point, memory_bytes);
  return other.empty() ? reason : reason + "; " + other;
}

}  // namespace shardmark
