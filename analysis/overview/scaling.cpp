// What more ranks are worth: the efficiency of each strategy on each number of ranks.
#include "analysis/stats/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "analysis/frame/groups.h"
#include "analysis/frame/names.h"
#include "analysis/overview/overview.h"
#include "analysis/table/axis_columns.h"
#include "analysis/table/cells.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

// Ranks, nodes and what people call both.
using RankCount = std::tuple<int64_t, int64_t, std::string>;
RankCount rank_count_of(const MergedPoint& merged) {
  return {merged.point.ranks, merged.names_nodes ? merged.nodes : 0, ranks_text(merged)};
}

// A point of a series, as it is shown here.
struct RatedPoint {
  const ScalingSeries* series;
  const MergedPoint* merged;
  double efficiency;
  int64_t base_ranks;

  Cell cell() const {
    Cell cell = cells::percent(efficiency, 0);
    if (is_unreliable(*merged)) cell.text += kMark;
    return cell;
  }
};

// Every point of a series is shown with the efficiency that efficiencies_of() chose for it. Those without
// one are bases: 100 % by definition.
std::vector<RatedPoint> rated_points(const std::vector<ScalingSeries>& scaling) {
  const Efficiencies efficiencies = efficiencies_of(scaling);
  std::vector<RatedPoint> all;
  for (const ScalingSeries& series : scaling)
    for (const ScalingPoint& point : series.points)
      if (const auto rated = efficiencies.find({series.scaling, point.merged}); rated == efficiencies.end())
        all.push_back({&series, point.merged, 1, point.merged->point.ranks});
      else
        all.push_back(
            {&series, point.merged, rated->second.point->efficiency.value, rated->second.base_ranks});
  return all;
}

}  // namespace

bool answers_scaling(const std::vector<ScalingSeries>& scaling) {
  return std::any_of(scaling.begin(), scaling.end(),
                     [](const ScalingSeries& series) { return series.points.size() > 2; });
}

OverviewTable scaling_overview(const std::vector<MergedPoint>& points,
                               const std::vector<ScalingSeries>& scaling) {
  const std::vector<RatedPoint> all = rated_points(scaling);
  std::set<int64_t> bases;
  for (const RatedPoint& point : all) bases.insert(point.base_ranks);
  OverviewTable table{
      "",
      scaling.empty() || scaling.front().scaling == Scaling::weak ? "scaling.weak" : "scaling.strong",
      {choice_column("strategy")},
      {},
      {}};
  table.title = fmt::format("Scaling: efficiency, {} = 100 %",
                            bases.size() == 1 ? ranks_text(*bases.begin()) : "the fewest ranks of a row");
  // If all rows have one base, its column would be 100 % in each row; the title says it instead.
  std::set<RankCount> places;
  for (const RatedPoint& point : all)
    if (bases.size() > 1 || point.merged->point.ranks != *bases.begin())
      places.insert(rank_count_of(*point.merged));
  for (const auto& [ranks, nodes, text] : places)
    table.columns.push_back(
        {.name = text,
         .unit = "%",
         .definition = "efficiency: speed per rank / that on the fewest ranks measured with the same batch "
                       "per rank (weak scaling) or the same global batch (strong scaling)."});
  const PlotNames names(points);
  std::vector<LabelParts> settings;
  bool any_doubtful = false;
  for (const auto& setting : groups_of(all, [](const RatedPoint& point) {
         return std::tuple(point.series->scaling, point.merged->family, point.series->fixed_batch);
       })) {
    OverviewGroup& group = table.groups.emplace_back();
    std::vector<LabelParts> strategies;
    for (const auto& row : groups_of(setting, [](const auto& point) { return point.merged->strategy; })) {
      const TrainingPoint& first = row.front()->merged->point.training;
      strategies.push_back({choice_part("strategy", strategy_text(first), Said::always)});
      std::vector<Cell>& cells = group.rows.emplace_back();
      cells.push_back(strategy_cell(first));
      for (const RankCount& place : places) {
        const auto found = std::find_if(row.rbegin(), row.rend(), [&](const RatedPoint* point) {
          return rank_count_of(*point->merged) == place;
        });
        cells.push_back(found == row.rend() ? cells::words("") : (*found)->cell());
        any_doubtful = any_doubtful || cells.back().text.ends_with(kMark);
      }
    }
    const std::string shared = name_rows(group, strategies);
    settings.push_back(
        names.parts(*setting.front()->merged, {{"batch", batch_text(*setting.front()->series)}}));
    settings.back().push_back({"strategy", shared});
  }
  name_groups(table, settings);
  if (any_doubtful) table.notes.emplace_back("?: the times of this point have a warning, see below.");
  return table;
}

}  // namespace shardmark
