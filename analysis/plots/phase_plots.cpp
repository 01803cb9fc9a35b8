// Where the time of a step goes, strategy by strategy.
#include <cmath>

#include "analysis/frame/quantities.h"
#include "analysis/frame/rows.h"
#include "analysis/plots/plots.h"
#include "analysis/plots/row_curves.h"

namespace shardmark {
namespace {

constexpr StackedPart kPhases[] = {{"forward_time", "forward", 0},
                                   {"backward_time", "backward", 1},
                                   {"exposed_time", "exposed communication", 2},
                                   {"optimizer_time", "optimizer", 3},
                                   {"data_time", "data", 4}};

}  // namespace

Plots phase_plots(const std::vector<MergedPoint>& points, const PlotNames& names) {
  Plots plots;
  const auto has_phases = [](const MergedPoint& merged) { return std::isfinite(merged.measures.forward_s); };
  for (const RowGroup& group : row_groups(points, names, has_phases)) {
    Plot plot{"phases",
              "phases",
              "Where the time of a step goes",
              group.about,
              "Each phase: median over the steps, on the rank that was slowest in that step.",
              {""},
              {column_of({"step", "", "time"}).heading()},
              group.rows,
              {}};
    for (const auto& [quantity, name, style] : kPhases)
      plot.curves.push_back(row_curve({name, Form::bar, style, {}}, quantity, group.points, group.rows));
    // The median of the whole step, which the medians of its parts need not add up to.
    plot.curves.push_back(row_curve({"step", Form::target, kNeutral, {}}, "step", group.points, group.rows));
    plots.push_back(std::move(plot));
  }
  return plots;
}

}  // namespace shardmark
