// The collective points of a study that give an operation's time, and how well they predict each other.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "analysis/predict/collective_settings.h"

namespace shardmark {
namespace {

// Only operations as training uses them: sums of float32 (or no reduction), equal parts, several ranks.
// Points on nodes with unequal numbers of ranks are left out, because the cost model knows only equal ones.
bool is_usable(const MergedPoint& merged, const std::string& machine, const std::string& transport) {
  const CollectivePoint& c = merged.point.collective;
  return is_collective(merged) && c.parts == "equal" && !is_unreliable(merged) && merged.machine == machine &&
         merged.transport == transport && c.dtype == "float32" &&
         (c.reduction == "sum" || c.reduction == "none") && merged.point.ranks > 1 &&
         (merged.nodes == 1 || merged.ranks_per_node > 0) && specs::find_collective(c.operation) != nullptr;
}

}  // namespace

std::vector<TimedCollective> timed_collectives(const std::vector<MergedPoint>& points,
                                               const std::string& machine, const std::string& transport) {
  // A fit needs times that differ in ranks and size alone. Points that differ in more (settings, seed ...)
  // are separate series, and so are operations in place and out of place. Each operation is fitted to
  // its series with the most points; of two equally long ones to that in place, because training reduces in
  // place.
  using Times = std::map<std::tuple<int64_t, int64_t, int64_t>, TimedCollective>;  // ranks, nodes, bytes
  std::map<specs::Collective, std::map<std::pair<bool, std::string>, Times>> all;  // in place, series_key()
  for (const MergedPoint& merged : points) {
    if (!is_usable(merged, machine, transport)) continue;
    const CollectivePoint& c = merged.point.collective;
    const Measures& m = merged.measures;
    const specs::Collective operation = specs::collective(c.operation).what;
    Times& times = all[operation][{c.in_place, series_key(merged, {"ranks", "bytes"})}];
    const auto [found, is_new] = times.try_emplace({merged.point.ranks, merged.nodes, c.bytes});
    if (!is_new && found->second.time_s.value <= m.step_s) continue;  // with other numbers of ranks on nodes
    found->second = {
        operation, static_cast<double>(c.bytes), {merged.point.ranks, merged.nodes}, step_estimate(m)};
  }
  std::vector<TimedCollective> chosen;
  for (const auto& [operation, series] : all) {
    const auto most = std::max_element(series.begin(), series.end(), [](const auto& a, const auto& b) {
      return std::pair(a.second.size(), a.first.first) < std::pair(b.second.size(), b.first.first);
    });
    for (const auto& [key, time] : most->second) chosen.push_back(time);
  }
  return chosen;
}

std::vector<CollectiveSetting> collective_settings(const std::vector<MergedPoint>& points) {
  std::set<std::pair<std::string, std::string>> found;
  for (const MergedPoint& merged : points)
    if (is_collective(merged)) found.emplace(merged.machine, merged.transport);
  std::vector<CollectiveSetting> settings;
  for (const auto& [machine, transport] : found)
    if (auto times = timed_collectives(points, machine, transport); !times.empty())
      settings.push_back({machine, transport, std::move(times)});
  return settings;
}

// The other operations cannot tell an inner size, so each is looked at by itself.
std::vector<HeldOutCollective> held_out_collectives(const std::vector<TimedCollective>& times) {
  std::map<specs::Collective, std::vector<TimedCollective>> by_operation;
  for (const TimedCollective& time : times) by_operation[time.operation].push_back(time);
  std::vector<HeldOutCollective> all;
  for (const auto& [operation, measured] : by_operation) {
    std::map<std::pair<int64_t, int64_t>, std::vector<size_t>> spans;
    for (size_t i = 0; i < measured.size(); ++i)
      spans[{measured[i].span.ranks, measured[i].span.nodes}].push_back(i);
    for (auto& [key, sizes] : spans) {
      std::sort(sizes.begin(), sizes.end(),
                [&](size_t a, size_t b) { return measured[a].bytes < measured[b].bytes; });
      HeldOutCollective held{operation, {key.first, key.second}, {}, {}};
      for (size_t i = 1; i + 1 < sizes.size(); ++i) {
        std::vector<TimedCollective> others = measured;
        const TimedCollective out = others[sizes[i]];
        others.erase(others.begin() + static_cast<std::ptrdiff_t>(sizes[i]));
        const double predicted_s = CollectiveCosts(others).time_s(operation, out.bytes, out.span);
        if (!std::isfinite(predicted_s)) continue;
        held.bytes.push_back(out.bytes);
        held.errors.push_back(predicted_s / out.time_s.value - 1);
      }
      if (!held.errors.empty()) all.push_back(std::move(held));
    }
  }
  return all;
}

}  // namespace shardmark
