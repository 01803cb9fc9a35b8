#include "analysis/stats/series.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "analysis/frame/groups.h"

namespace shardmark {
namespace {

size_t longest_of(const SeriesGroup& group) {
  size_t longest = 0;
  for (const ScalingSeries* series : group) longest = std::max(longest, series->points.size());
  return longest;
}

}  // namespace

std::string series_about(const ScalingSeries& series, const PlotNames& names) {
  return names.family(*series.points.front().merged) + ", " + batch_text(series);
}

std::vector<SeriesGroup> series_groups(const std::vector<ScalingSeries>& all) {
  std::vector<SeriesGroup> groups = groups_of(all, [](const ScalingSeries& series) {
    return std::tuple(series.scaling, series.points.front().merged->family, series.fixed_batch, series.span,
                      series.ranks_per_unit);
  });
  std::map<Scaling, size_t> longest;
  for (const SeriesGroup& group : groups) {
    size_t& most = longest[group.front()->scaling];
    most = std::max(most, longest_of(group));
  }
  std::erase_if(groups, [&](const SeriesGroup& group) {
    return longest_of(group) < std::min<size_t>(3, longest[group.front()->scaling]);
  });
  return groups;
}

}  // namespace shardmark
