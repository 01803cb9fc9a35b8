// What a rank holds, kind by kind, and what is predicted.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/frame/rows.h"
#include "analysis/plots/memory_unit.h"
#include "analysis/plots/plots.h"
#include "analysis/plots/row_curves.h"
#include "analysis/table/cells.h"

namespace shardmark {
namespace {

constexpr StackedPart kMemoryParts[] = {{"parameter_bytes", "parameters", 0},
                                        {"gradient_bytes", "gradients", 1},
                                        {"optimizer_bytes", "optimizer state", 3},
                                        {"transient_bytes", "transient", 2},
                                        {"activation_bytes", "activations", 4}};

}  // namespace

Plots memory_plots(const std::vector<MergedPoint>& points, const PlotNames& names) {
  Plots plots;
  const auto has_memory = [](const MergedPoint& m) { return std::isfinite(m.measures.parameter_bytes); };
  for (const RowGroup& group : row_groups(points, names, has_memory)) {
    const bool has_prediction = std::any_of(
        group.points.begin(), group.points.end(),
        [](const MergedPoint* merged) { return std::isfinite(merged->measures.predicted_peak_bytes()); });
    const MemoryUnit unit = memory_unit(group.points);
    Plot plot{"memory",
              "memory",
              has_prediction ? "Memory of a rank, measured and predicted" : "Memory of a rank",
              group.about,
              has_prediction
                  ? "On the rank that needs most. Predicted: parameters, gradients, optimizer state and "
                    "transient slots by the strategy's formula, activations by the model's table."
                  : "On the rank that needs most.",
              {""},
              {fmt::format("memory ({})", unit.name)},
              group.rows,
              {}};
    const auto add = [&](Curve curve, std::string_view quantity) {
      plot.curves.push_back(
          row_curve(std::move(curve), quantity, group.points, group.rows, unit.bytes / cells::kMebi));
    };
    for (const auto& [quantity, name, style] : kMemoryParts) add({name, Form::bar, style, {}}, quantity);
    if (has_prediction) add({"predicted", Form::target, kNeutral, {}}, "predicted_peak_bytes");
    plots.push_back(std::move(plot));
  }
  return plots;
}

}  // namespace shardmark
