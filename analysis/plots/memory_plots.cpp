// What a rank holds, kind by kind, and what is predicted.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/frame/rows.h"
#include "analysis/plots/memory_unit.h"
#include "analysis/plots/plots.h"
#include "base/units.h"

namespace shardmark {
namespace {

struct Kind {
  const char* name;
  int style;  // filling
  double (*bytes)(const Measures& m);
};

constexpr std::array<Kind, 5> kKinds = {{
    {"parameters", 0, [](const Measures& m) { return m.parameter_bytes; }},
    {"gradients", 1, [](const Measures& m) { return m.gradient_bytes; }},
    {"optimizer state", 3, [](const Measures& m) { return m.optimizer_bytes; }},
    {"transient", 2, [](const Measures& m) { return m.transient_bytes; }},
    {"activations", 4, [](const Measures& m) { return m.activation_bytes(); }},
}};

Curve curve_of(const Kind& kind, Form form, const RowGroup& group, const MemoryUnit& unit) {
  Curve curve{kind.name, form, kind.style, {}};
  for (size_t row = 0; row < group.points.size(); ++row) {
    const double bytes = kind.bytes(group.points[row]->measures);
    curve.points.push_back({static_cast<double>(row), bytes / unit.bytes});
    curve.points.back().text = group.rows[row] + ": " + format_bytes(bytes);
  }
  return curve;
}

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
    for (const Kind& kind : kKinds) plot.curves.push_back(curve_of(kind, Form::bar, group, unit));
    if (has_prediction)
      plot.curves.push_back(
          curve_of({"predicted", kNeutral, [](const Measures& m) { return m.predicted_peak_bytes(); }},
                   Form::target, group, unit));
    plots.push_back(std::move(plot));
  }
  return plots;
}

}  // namespace shardmark
