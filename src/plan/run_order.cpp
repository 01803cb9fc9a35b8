// The order of a run, and how long it may take. Points are shuffled within each repetition, so that a slow
// drift of the machine does not look like the effect of an axis.
#include <fmt/format.h>

#include <numeric>
#include <random>
#include <utility>

#include "base/units.h"
#include "plan/plan.h"

namespace shardmark {

// Fisher-Yates shuffle, written out because the result of std::shuffle may differ between standard libraries.
// The bias of the remainder is below points / 2^64.
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

double time_limit_s(const Point& point) {
  if (!point.impossible.empty()) return 0;
  const Sampling& s = point.sampling;
  return s.duration_s > 0 ? s.duration_s : s.time_limit_s;
}

std::string extent_text(const std::vector<Point>& points) {
  double sum_s = 0;
  for (const Point& point : points) sum_s += time_limit_s(point);
  return fmt::format("{} point{}, at most {} of timed steps", points.size(), points.size() == 1 ? "" : "s",
                     format_seconds(sum_s));
}

}  // namespace shardmark
