// Layouts of the same training, the fastest on top: what of a step computes, and what waits for whom.
#include <fmt/format.h>

#include "analysis/frame/layouts.h"
#include "analysis/frame/quantities.h"
#include "analysis/frame/rows.h"
#include "analysis/plots/plots.h"
#include "analysis/plots/row_curves.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

constexpr StackedPart kLayoutParts[] = {{"computing", "computing", 0},
                                        {"exposed_data_time", "waiting for data-parallel ranks", 1},
                                        {"exposed_tensor_time", "for tensor-parallel ranks", 2},
                                        {"exposed_context_time", "for context-parallel ranks", 3},
                                        {"exposed_expert_time", "for expert-parallel ranks", 5},
                                        {"exposed_pipeline_time", "for other stages", 4}};

}  // namespace

Plots layout_plots(const std::vector<MergedPoint>& points) {
  Plots plots;
  for (const Layouts& layouts : layouts_of(points)) {
    const Point& first = layouts.front()->point;
    Plot plot{"layouts",
              "layouts",
              "Layouts of the same training",
              fmt::format("{}, {}, global batch {}, {}", brief_text("model", first.training.model),
                          first.training.precision, first.global_batch(), ranks_text(*layouts.front())),
              "Phases are medians over the steps, on the rank that was slowest in that step.",
              {""},
              {column_of({"step", "", "time"}).heading()},
              {},
              {}};
    const size_t shown = std::min(layouts.size(), kMostRows);
    for (size_t row = 0; row < shown; ++row)
      plot.rows.push_back(fmt::format("{}, {}", layout_text(layouts[row]->point),
                                      brief_text("strategy", layouts[row]->point.training.strategy)));
    for (const auto& [quantity, name, style] : kLayoutParts) {
      Curve curve = row_curve({name, Form::bar, style, {}}, quantity, layouts, plot.rows);
      std::erase_if(curve.points, [](const PlotPoint& point) { return !(point.value > 0); });
      if (!curve.points.empty()) plot.curves.push_back(std::move(curve));
    }
    plots.push_back(std::move(plot));
  }
  return plots;
}

}  // namespace shardmark
