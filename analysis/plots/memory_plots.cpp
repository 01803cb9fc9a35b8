// What a rank holds, kind by kind, and what is predicted.
#include <fmt/format.h>

#include <cmath>

#include "analysis/frame/rows.h"
#include "analysis/plots/plots.h"
#include "analysis/table/cells.h"
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

Curve curve_of(const Kind& kind, Form form, const RowGroup& group) {
  Curve curve{kind.name, form, kind.style, {}};
  for (size_t row = 0; row < group.points.size(); ++row) {
    const double bytes = kind.bytes(group.points[row]->measures);
    curve.points.push_back({static_cast<double>(row), bytes / cells::kMebi});
    curve.points.back().text = group.rows[row] + ": " + format_bytes(bytes);
  }
  return curve;
}

}  // namespace

Plots memory_plots(const std::vector<MergedPoint>& points, const PlotNames& names) {
  Plots plots;
  const auto has_memory = [](const MergedPoint& m) { return std::isfinite(m.measures.parameter_bytes); };
  for (const RowGroup& group : row_groups(points, names, has_memory)) {
    Plot plot{"memory",
              "memory",
              "Memory of a rank, measured and predicted",
              group.about,
              "On the rank that needs most. Predicted: parameters, gradients, optimizer state and transient "
              "slots by the strategy's formula, activations by the model's table.",
              {""},
              {"memory (MiB)"},
              group.rows,
              {}};
    for (const Kind& kind : kKinds) plot.curves.push_back(curve_of(kind, Form::bar, group));
    plot.curves.push_back(
        curve_of({"predicted", kNeutral, [](const Measures& m) { return m.predicted_peak_bytes(); }},
                 Form::target, group));
    plots.push_back(std::move(plot));
  }
  return plots;
}

}  // namespace shardmark
