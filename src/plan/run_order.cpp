// The order of a run: shuffled within each repetition, so that a slow drift of the machine does not look like
// an effect.
#include <numeric>
#include <random>
#include <utility>

#include "plan/plan.h"

namespace shardmark {

// Fisher-Yates by hand: std::shuffle may order differently with every standard library. The remainder's bias
// is below points / 2^64.
std::vector<size_t> run_order(const Suite& suite, const std::vector<Point>& plan) {
  std::vector<size_t> order(plan.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (!suite.shuffle) return order;
  std::mt19937_64 random(static_cast<uint64_t>(suite.seed));
  for (size_t begin = 0, end = 0; begin < plan.size(); begin = end) {
    while (end < plan.size() && plan[end].repeat == plan[begin].repeat) ++end;
    for (size_t i = end - 1; i > begin; --i) std::swap(order[i], order[begin + random() % (i - begin + 1)]);
  }
  return order;
}

}  // namespace shardmark
