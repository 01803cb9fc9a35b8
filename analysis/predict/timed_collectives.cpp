// The collective points of a study that say how long an operation takes.
#include <map>
#include <tuple>

#include "analysis/predict/collective_costs.h"

namespace shardmark {
namespace {

bool is_usable(const MergedPoint& merged, const std::string& machine, const std::string& transport) {
  const CollectivePoint& c = merged.point.collective;
  return !is_training(merged) && !is_doubtful(merged) && merged.machine == machine &&
         merged.transport == transport && c.dtype == "float32" &&
         (c.reduction == "sum" || c.reduction == "none") && merged.point.ranks > 1 &&
         (merged.nodes == 1 || merged.ranks_per_node > 0);
}

}  // namespace

std::vector<TimedCollective> timed_collectives(const std::vector<MergedPoint>& points,
                                               const std::string& machine, const std::string& transport) {
  std::map<std::tuple<std::string, int64_t, int64_t, int64_t>, TimedCollective> fastest;
  for (const MergedPoint& merged : points) {
    if (!is_usable(merged, machine, transport)) continue;
    const CollectivePoint& c = merged.point.collective;
    const Measures& m = merged.measures;
    const auto [found, is_new] =
        fastest.try_emplace({c.operation, merged.point.ranks, merged.nodes, c.bytes});
    if (!is_new && found->second.time_s.value <= m.step_s) continue;
    found->second = {c.operation,
                     static_cast<double>(c.bytes),
                     {merged.point.ranks, merged.nodes},
                     {m.step_s, m.step_low_s, m.step_high_s}};
  }
  std::vector<TimedCollective> times;
  times.reserve(fastest.size());
  for (auto& [key, time] : fastest) times.push_back(std::move(time));
  return times;
}

}  // namespace shardmark
