// What more ranks are worth: the efficiency of each strategy on each number of ranks.
#include "analysis/stats/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

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

struct EfficiencyRow {
  const MergedPoint* first = nullptr;
  std::map<RankCount, Cell> cells;
};
// Of one family and batch.
struct EfficiencyRows {
  const MergedPoint* first = nullptr;
  std::string batch;
  std::map<std::string, size_t> known;  // by strategy
  std::vector<EfficiencyRow> rows;
};

Cell efficiency_cell(const MergedPoint& merged, double efficiency) {
  Cell cell = cells::percent(efficiency, 0);
  if (is_unreliable(merged)) cell.text += kMark;
  return cell;
}

std::vector<EfficiencyRows> efficiency_rows_of(const std::vector<ScalingSeries>& scaling,
                                               std::set<int64_t>& bases) {
  const Efficiencies efficiencies = efficiencies_of(scaling);
  std::map<std::tuple<Scaling, std::string, int64_t>, size_t> known;
  std::vector<EfficiencyRows> all;
  for (const ScalingSeries& series : scaling)
    for (const ScalingPoint& point : series.points) {
      const MergedPoint& merged = *point.merged;
      const auto rated = efficiencies.find({series.scaling, &merged});
      bases.insert(rated == efficiencies.end() ? merged.point.ranks : rated->second.base_ranks);
      const auto [found, is_new] =
          known.try_emplace({series.scaling, merged.family, series.fixed_batch}, all.size());
      if (is_new)
        all.push_back({&merged,
                       series.scaling == Scaling::weak ? fmt::format("batch {} per rank", series.fixed_batch)
                                                       : fmt::format("global batch {}", series.fixed_batch),
                       {},
                       {}});
      EfficiencyRows& rows = all[found->second];
      const auto [row, is_new_row] = rows.known.try_emplace(merged.strategy, rows.rows.size());
      if (is_new_row) rows.rows.push_back({&merged, {}});
      rows.rows[row->second].cells[rank_count_of(merged)] =
          efficiency_cell(merged, rated == efficiencies.end() ? 1 : rated->second.point->efficiency.value);
    }
  return all;
}

}  // namespace

bool answers_scaling(const std::vector<ScalingSeries>& scaling) {
  return std::any_of(scaling.begin(), scaling.end(),
                     [](const ScalingSeries& series) { return series.points.size() > 2; });
}

OverviewTable scaling_overview(const std::vector<MergedPoint>& points,
                               const std::vector<ScalingSeries>& scaling) {
  std::set<int64_t> bases;
  const std::vector<EfficiencyRows> all = efficiency_rows_of(scaling, bases);
  OverviewTable table{
      "",
      scaling.empty() || scaling.front().scaling == Scaling::weak ? "scaling.weak" : "scaling.strong",
      {choice_column("strategy")},
      {},
      {}};
  table.title = fmt::format("Scaling: efficiency, {} = 100 %",
                            bases.size() == 1 ? ranks_text(*bases.begin()) : "the fewest ranks of a row");
  std::set<RankCount> places;
  for (const EfficiencyRows& rows : all)
    for (const EfficiencyRow& row : rows.rows)
      for (const auto& [place, cell] : row.cells)
        if (bases.size() > 1 || std::get<0>(place) != *bases.begin()) places.insert(place);
  for (const auto& [ranks, nodes, text] : places)
    table.columns.push_back(
        {.name = text,
         .unit = "%",
         .definition = "efficiency: speed per rank / that on the fewest ranks measured with the same batch "
                       "per rank (weak scaling) or the same global batch (strong scaling)."});
  const PlotNames names(points);
  std::vector<LabelParts> settings;
  bool any_doubtful = false;
  for (const EfficiencyRows& rows : all) {
    OverviewGroup& group = table.groups.emplace_back();
    std::vector<LabelParts> strategies;
    for (const EfficiencyRow& row : rows.rows) {
      strategies.push_back({choice_part("strategy", strategy_text(row.first->point.training), Said::always)});
      std::vector<Cell>& cells = group.rows.emplace_back();
      cells.push_back(strategy_cell(row.first->point.training));
      for (const RankCount& place : places) {
        const auto found = row.cells.find(place);
        cells.push_back(found == row.cells.end() ? cells::words("") : found->second);
        any_doubtful = any_doubtful || cells.back().text.ends_with(kMark);
      }
    }
    const std::string shared = name_rows(group, strategies);
    settings.push_back(names.parts(*rows.first, {{"batch", rows.batch}}));
    settings.back().push_back({"strategy", shared});
  }
  name_groups(table, settings);
  if (any_doubtful) table.notes.emplace_back("?: the times of this point have a warning, see below.");
  return table;
}

}  // namespace shardmark
