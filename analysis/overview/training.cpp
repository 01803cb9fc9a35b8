// Which strategy is fastest, and what it costs: on the most ranks of each setting.
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "analysis/overview/overview.h"
#include "analysis/plots/rows.h"
#include "analysis/table/axis_columns.h"
#include "analysis/table/cells.h"
#include "analysis/tables/training_columns.h"

namespace shardmark {
namespace {

using PointList = std::vector<const MergedPoint*>;

constexpr double kMargin = 0.05;  // differences below it do not matter: the default of `compare`

// The ranks of `single` train independent copies: what it is measured for is to compare others with it.
bool is_rival(const MergedPoint& merged) {
  return !is_unreliable(merged) && (!is_replicas(merged) || merged.point.ranks == 1);
}

// Rivals first, the fastest of them first; then `single`, then unreliable ones.
PointList in_order(PointList points) {
  std::stable_sort(points.begin(), points.end(), [](auto* a, auto* b) {
    const auto order = [](const MergedPoint& one) {
      return std::tuple(is_unreliable(one), !is_rival(one), one.measures.step_s);
    };
    return order(*a) < order(*b);
  });
  return points;
}

// "fastest", "equal" where both 95 % intervals allow no more than the margin, "+11 %", "+3 % ?" where the
// intervals overlap more widely than that.
Cell against(const MergedPoint& merged, const MergedPoint* best) {
  if (is_unreliable(merged)) return cells::words("unreliable");
  if (best == nullptr || !is_rival(merged)) return cells::words("");
  if (best == &merged) return cells::words("fastest");
  const Measures &m = merged.measures, &b = best->measures;
  const std::string slower = cells::percent(m.step_s / b.step_s - 1, 0).text;
  if (m.step_low_s > b.step_high_s) return cells::words("+" + slower + " %");
  const bool is_equal =
      m.step_high_s <= (1 + kMargin) * b.step_low_s && b.step_high_s <= (1 + kMargin) * m.step_low_s;
  return cells::words(is_equal ? "equal" : "+" + slower + " % ?");
}

// By scaling and point: its efficiency against the fewest ranks of its series.
using Efficiencies = std::map<std::pair<Scaling, const MergedPoint*>, double>;

Efficiencies efficiencies_of(const std::vector<ScalingSeries>& scaling) {
  Efficiencies efficiencies;
  for (const ScalingSeries& series : scaling)
    for (const ScalingPoint& point : series.points)
      if (&point != &series.points.front())
        efficiencies.try_emplace({series.scaling, point.merged}, point.efficiency.value);
  return efficiencies;
}

}  // namespace

OverviewTable training_overview(const std::vector<MergedPoint>& points,
                                const std::vector<ScalingSeries>& scaling) {
  OverviewTable table{
      "Training, on the most ranks of each setting",
      "strategies",
      {choice_column("strategy"),
       {.name = "step", .unit = "ms", .definition = "median over the steps, of the slowest rank's time."},
       {.name = "vs fastest",
        .definition =
            "step time / that of the fastest strategy - 1. equal: by the 95 % intervals, 5 % at most; ?: the "
            "intervals overlap, so the order is uncertain; unreliable: not ranked, see below. `single` on "
            "several ranks is not ranked: its ranks train independent copies."},
       {.name = "peak memory",
        .unit = "MiB",
        .definition = "highest total during a step, on the rank that needs most."},
       {.name = "exposed",
        .unit = "%",
        .definition = "the part of a step during which computing waited for communication."},
       {.name = "weak",
        .unit = "eff. %",
        .definition = "efficiency of weak scaling: speed per rank against the fewest ranks measured with the "
                      "same batch per rank."},
       {.name = "strong",
        .unit = "eff. %",
        .definition = "efficiency of strong scaling: the same with the same global batch."}},
      {}};
  const ColumnsOf<MergedPoint> speed = point_throughput_columns();
  for (auto column = speed.rbegin(); column != speed.rend(); ++column) {
    table.columns.insert(table.columns.begin() + 1, column->head);
    table.columns[1].definition = column->definition;
  }
  const PlotNames names(points);
  const Efficiencies efficiencies = efficiencies_of(scaling);
  for (const SettingPoints& setting : settings_on_most_ranks(points, names, is_training)) {
    const PointList shown = in_order(setting.points);
    const auto num_rivals =
        std::count_if(shown.begin(), shown.end(), [](auto* one) { return is_rival(*one); });
    const MergedPoint* const best = num_rivals < 2 ? nullptr : shown.front();
    OverviewGroup rows{setting.name, {}};
    for (const MergedPoint* merged : shown) {
      const Measures& m = merged->measures;
      const auto efficiency = [&](Scaling of) {
        const auto found = efficiencies.find({of, merged});
        return cells::percent(found == efficiencies.end() ? NAN : found->second);
      };
      std::vector<Cell>& row = rows.rows.emplace_back();
      row.push_back(strategy_cell(merged->point.training));
      for (const auto& column : speed) row.push_back(column.cell(*merged));
      row.insert(row.end(), {cells::milliseconds(m.step_s), against(*merged, best),
                             cells::mebibytes(m.peak_bytes), cells::percent(m.exposed_s / m.step_s),
                             efficiency(Scaling::weak), efficiency(Scaling::strong)});
    }
    table.groups.push_back(std::move(rows));
  }
  return table;
}

}  // namespace shardmark
