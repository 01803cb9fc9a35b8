// See scaling.h.
#include "analysis/scaling.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace shardmark {

std::vector<ScalingSeries> scaling_series(const std::vector<MergedPoint>& points, Scaling scaling) {
  using Key = std::tuple<std::string, std::string, int64_t>;
  std::map<Key, size_t> known;
  std::vector<ScalingSeries> all;  // in the order of their first points
  for (const MergedPoint& merged : points) {
    if (!is_training(merged) || is_replicas(merged)) continue;
    const Point& p = merged.point;
    const int64_t fixed = scaling == Scaling::weak ? p.training.batch_size : p.global_batch();
    const auto [found, is_new] = known.try_emplace({merged.family, merged.strategy, fixed}, all.size());
    if (is_new) all.emplace_back();
    all[found->second].push_back(&merged);
  }
  std::erase_if(all, [](const ScalingSeries& series) { return series.size() < 2; });
  for (ScalingSeries& series : all)
    std::sort(series.begin(), series.end(), [](auto* a, auto* b) { return a->point.ranks < b->point.ranks; });
  return all;
}

double weak_efficiency(double base_step_s, double step_s) { return base_step_s / step_s; }

double strong_efficiency(int64_t base_ranks, double base_step_s, int64_t ranks, double step_s) {
  return static_cast<double>(base_ranks) * base_step_s / (static_cast<double>(ranks) * step_s);
}

double karp_flatt(double speedup, int64_t ranks) {
  if (ranks == 1) return Measures::kNone;
  const double share = 1 / static_cast<double>(ranks);
  return (1 / speedup - share) / (1 - share);
}

}  // namespace shardmark
