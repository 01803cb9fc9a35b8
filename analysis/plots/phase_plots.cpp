// Where the time of a step goes, strategy by strategy.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "analysis/frame/rows.h"
#include "analysis/plots/plots.h"
#include "base/units.h"

namespace shardmark {
namespace {

struct Phase {
  const char* name;
  double Measures::*time_s;
  int style;  // filling
};

constexpr std::array<Phase, 5> kPhases = {{{"forward", &Measures::forward_s, 0},
                                           {"backward", &Measures::backward_s, 1},
                                           {"exposed communication", &Measures::exposed_s, 2},
                                           {"optimizer", &Measures::optimizer_s, 3},
                                           {"data", &Measures::data_s, 4}}};

Curve phase_curve(const Phase& phase, const RowGroup& group) {
  Curve curve{phase.name, Form::bar, phase.style, {}};
  for (size_t row = 0; row < group.points.size(); ++row) {
    const Measures& m = group.points[row]->measures;
    const double time_s = m.*phase.time_s;
    curve.points.push_back({static_cast<double>(row), time_s * 1e3});
    curve.points.back().text = fmt::format("{}: {}, {:.1f} % of the step", group.rows[row],
                                           format_seconds(time_s), 100 * time_s / m.step_s);
  }
  return curve;
}

// The median of the whole step, which the medians of its parts need not add up to.
Curve step_curve(const RowGroup& group) {
  Curve curve{"step", Form::target, kNeutral, {}};
  for (size_t row = 0; row < group.points.size(); ++row) {
    const double step_s = group.points[row]->measures.step_s;
    curve.points.push_back({static_cast<double>(row), step_s * 1e3});
    curve.points.back().text = group.rows[row] + ": " + format_seconds(step_s);
  }
  return curve;
}

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
              {"time (ms)"},
              group.rows,
              {}};
    for (const Phase& phase : kPhases) plot.curves.push_back(phase_curve(phase, group));
    plot.curves.push_back(step_curve(group));
    plots.push_back(std::move(plot));
  }
  return plots;
}

}  // namespace shardmark
