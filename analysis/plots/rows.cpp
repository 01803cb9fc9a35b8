// See rows.h.
#include "analysis/plots/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace shardmark {
namespace {

// What a point's group is called: a sweep of strong scaling shares a global batch, all others the batch of a
// rank. A point that both asked for belongs to both.
std::set<std::string> batch_texts(const MergedPoint& merged) {
  std::set<std::string> texts;
  const int64_t batch = merged.point.training.batch_size;
  for (const Record* record : merged.records)
    texts.insert(batch == kLargest ? "largest batch"
                 : record->point.training.scaling == "strong"
                     ? fmt::format("global batch {}", merged.point.global_batch())
                     : fmt::format("batch {} per rank", batch));
  return texts;
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
  std::map<std::string, size_t> open;  // the group that takes further points of this kind
  std::vector<RowGroup> groups;
  for (const MergedPoint& merged : points) {
    if (!is_training(merged) || !shown(merged)) continue;
    for (const std::string& batch : batch_texts(merged)) {
      const auto [found, is_new] = open.try_emplace(merged.family + batch, groups.size());
      if (!is_new && groups[found->second].points.size() == most_rows) found->second = groups.size();
      if (found->second == groups.size()) groups.push_back({names.family(merged) + ", " + batch, {}, {}, {}});
      groups[found->second].points.push_back(&merged);
    }
  }
  for (RowGroup& group : groups)
    std::stable_sort(group.points.begin(), group.points.end(),
                     [](auto* a, auto* b) { return a->point.ranks < b->point.ranks; });
  for (RowGroup& group : groups) name_rows(group, names);
  return groups;
}

}  // namespace shardmark
