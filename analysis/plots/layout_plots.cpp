// Layouts of the same training, the fastest on top: what of a step computes, and what waits for whom.
#include <fmt/format.h>

#include <cmath>

#include "analysis/frame/layouts.h"
#include "analysis/frame/rows.h"
#include "analysis/plots/plots.h"
#include "base/units.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

struct LayoutPart {
  const char* name;
  double (*seconds)(const Measures&);
};

constexpr std::array<LayoutPart, 5> kLayoutParts = {
    {{"computing", [](const Measures& m) { return m.step_s - m.exposed_s; }},
     {"waiting for data-parallel ranks", exposed_data_s},
     {"for tensor-parallel ranks", [](const Measures& m) { return m.exposed_tensor_s; }},
     {"for context-parallel ranks", [](const Measures& m) { return m.exposed_context_s; }},
     {"for other stages", [](const Measures& m) { return m.exposed_pipeline_s; }}}};

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
              {"time (ms)"},
              {},
              {}};
    const size_t shown = std::min(layouts.size(), kMostRows);
    for (size_t row = 0; row < shown; ++row)
      plot.rows.push_back(fmt::format("{}, {}", layout_text(layouts[row]->point),
                                      brief_text("strategy", layouts[row]->point.training.strategy)));
    for (size_t part = 0; part < kLayoutParts.size(); ++part) {
      Curve curve{kLayoutParts[part].name, Form::bar, static_cast<int>(part), {}};
      for (size_t row = 0; row < shown; ++row) {
        const Measures& m = layouts[row]->measures;
        const double seconds = kLayoutParts[part].seconds(m);
        if (!(seconds > 0)) continue;
        curve.points.push_back({static_cast<double>(row), seconds * 1e3});
        curve.points.back().text = fmt::format("{}: {}, {:.1f} % of the step", plot.rows[row],
                                               format_seconds(seconds), 100 * seconds / m.step_s);
      }
      if (!curve.points.empty()) plot.curves.push_back(std::move(curve));
    }
    plots.push_back(std::move(plot));
  }
  return plots;
}

}  // namespace shardmark
