#include "analysis/frame/rows.h"

#include <algorithm>
#include <map>
#include <set>

namespace shardmark {
namespace {

// A sweep of one strategy over ranks, and what its group is called: strong scaling shares a global batch, all
// others the batch of a rank.
struct Sweep {
  std::string strategy;  // with the family
  std::string batch;
  auto operator<=>(const Sweep&) const = default;
};

Sweep sweep_of(const MergedPoint& merged, bool strong) {
  const int64_t batch = merged.point.training.batch_size;
  return {
      merged.family + merged.strategy,
      batch == kLargest ? "largest batch" : batch_text(strong ? merged.point.global_batch() : batch, strong)};
}

std::set<Sweep> sweeps_of(const std::vector<MergedPoint>& points) {
  std::set<Sweep> sweeps;
  for (const MergedPoint& merged : points)
    for (const bool strong : {false, true})
      if (strong ? merged.is_strong : merged.is_weak) sweeps.insert(sweep_of(merged, strong));
  return sweeps;
}

// The batches of all sweeps that want this point: if two sweeps do, it was measured for one of them only.
std::set<std::string> batch_texts(const MergedPoint& merged, const std::set<Sweep>& sweeps) {
  std::set<std::string> texts;
  for (const bool strong : {false, true})
    if (const Sweep sweep = sweep_of(merged, strong); sweeps.contains(sweep)) texts.insert(sweep.batch);
  return texts;
}

// The most ranks of a group on which some point has no warnings; if every point has one, the most ranks of
// all. `single` counts only if there is nothing else, because its ranks do not work together.
std::pair<bool, int64_t> most_ranks(const RowGroup& group) {
  std::pair<bool, int64_t> most = {false, 0}, of_replicas = most;
  for (const MergedPoint* merged : group.points) {
    auto& largest = is_replicas(*merged) ? of_replicas : most;
    largest = std::max(largest, {!is_unreliable(*merged), merged->point.ranks});
  }
  return most.second > 0 ? most : of_replicas;
}

void name_rows(RowGroup& group, const PlotNames& names) {
  std::set<std::string> ranks;
  for (const MergedPoint* merged : group.points) ranks.insert(ranks_text(*merged));
  group.about = group.setting + (ranks.size() == 1 ? ", " + *ranks.begin() : "");
  for (const MergedPoint* merged : group.points)
    group.rows.push_back(names.strategy(*merged) + (ranks.size() == 1 ? "" : ", " + ranks_text(*merged)));
}

}  // namespace

std::vector<RowGroup> row_groups(const std::vector<MergedPoint>& points, const PlotNames& names,
                                 const std::function<bool(const MergedPoint&)>& shown, size_t most_rows) {
  const std::set<Sweep> sweeps = sweeps_of(points);
  std::map<std::string, size_t> open;  // the group that takes further points of this kind
  std::vector<RowGroup> groups;
  for (const MergedPoint& merged : points) {
    if (!is_training(merged) || !shown(merged)) continue;
    for (const std::string& batch : batch_texts(merged, sweeps)) {
      const auto [found, is_new] = open.try_emplace(merged.family + batch, groups.size());
      if (!is_new && groups[found->second].points.size() == most_rows) found->second = groups.size();
      if (found->second == groups.size())
        groups.push_back({names.family(merged) + ", " + batch, batch, {}, {}, {}});
      groups[found->second].points.push_back(&merged);
    }
  }
  for (RowGroup& group : groups)
    std::stable_sort(group.points.begin(), group.points.end(),
                     [](auto* a, auto* b) { return a->point.ranks < b->point.ranks; });
  for (RowGroup& group : groups) name_rows(group, names);
  return groups;
}

std::vector<SettingPoints> settings_on_most_ranks(const std::vector<MergedPoint>& points,
                                                  const PlotNames& names,
                                                  const std::function<bool(const MergedPoint&)>& shown) {
  std::map<std::string, size_t> known;
  std::set<const MergedPoint*> placed;
  std::vector<SettingPoints> settings;
  for (const RowGroup& group : row_groups(points, names, shown, points.size())) {
    const int64_t ranks = most_ranks(group).second;
    for (const MergedPoint* merged : group.points) {
      if (merged->point.ranks != ranks || !placed.insert(merged).second) continue;
      const auto [found, is_new] = known.try_emplace(series_key(*merged, {"strategy"}), settings.size());
      if (is_new)
        settings.push_back(
            {group.setting + ", " + ranks_text(*merged), group.batch, ranks_text(*merged), {}});
      settings[found->second].points.push_back(merged);
    }
  }
  return settings;
}

}  // namespace shardmark
