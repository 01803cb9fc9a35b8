#include "analysis/stats/series.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace shardmark {
namespace {

size_t longest_of(const SeriesGroup& group) {
  size_t longest = 0;
  for (const ScalingSeries* series : group) longest = std::max(longest, series->points.size());
  return longest;
}

}  // namespace

std::string series_about(const ScalingSeries& series, const PlotNames& names) {
  return names.family(*series.points.front().merged) +
         (series.scaling == Scaling::weak ? fmt::format(", batch {} per rank", series.fixed_batch)
                                          : fmt::format(", global batch {}", series.fixed_batch));
}

std::vector<SeriesGroup> series_groups(const std::vector<ScalingSeries>& all) {
  using Key = std::tuple<Scaling, std::string, int64_t, Span, int64_t>;
  std::map<Key, size_t> known;
  std::map<Scaling, size_t> longest;
  std::vector<SeriesGroup> groups;
  for (const ScalingSeries& series : all) {
    const Key key = {series.scaling, series.points.front().merged->family, series.fixed_batch, series.span,
                     series.ranks_per_unit};
    const auto [found, is_new] = known.try_emplace(key, groups.size());
    if (is_new) groups.emplace_back();
    groups[found->second].push_back(&series);
    longest[series.scaling] = std::max(longest[series.scaling], series.points.size());
  }
  std::erase_if(groups, [&](const SeriesGroup& group) {
    return longest_of(group) < std::min<size_t>(3, longest[group.front()->scaling]);
  });
  return groups;
}

}  // namespace shardmark
