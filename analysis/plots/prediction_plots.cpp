// Step times that were predicted without the point's own measurement, over what was measured.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/plots/plots.h"
#include "analysis/predict/predictor.h"
#include "base/units.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

constexpr double kBand = 0.10;  // drawn on both sides of what was measured

double milliseconds(double seconds) { return 1e3 * seconds; }

// y = factor x: straight between its ends, as both axes are logarithmic.
Curve proportional(const std::string& name, double factor, double from, double to) {
  return {name, Form::law, kNeutral, {{from, factor * from}, {to, factor * to}}};
}

PlotPoint point_of(const HeldOut& held, const PlotNames& names) {
  const Point& p = held.merged->point;
  const double step_s = held.predicted.step_s;
  return plot_point(
      milliseconds(held.merged->measures.step_s), {milliseconds(step_s)},
      fmt::format("{}, batch {}, {}: {} predicted, {} measured ({:+.0f} %)", names.family(*held.merged),
                  p.training.batch_size, ranks_text(*held.merged), format_seconds(step_s),
                  format_seconds(held.merged->measures.step_s), 100 * held.error()));
}

// A curve for each strategy, in the order of the points.
std::vector<Curve> marks(const std::vector<HeldOut>& all, const PlotNames& names) {
  std::vector<Curve> curves;
  for (const HeldOut& held : all) {
    const std::string& name = names.strategy(*held.merged);
    auto found =
        std::find_if(curves.begin(), curves.end(), [&](const Curve& curve) { return curve.name == name; });
    if (found == curves.end())
      found = curves.insert(found, {name, Form::dots, names.style(*held.merged), {}});
    found->points.push_back(point_of(held, names));
  }
  return curves;
}

}  // namespace

Plots prediction_plots(const std::vector<MergedPoint>& points, const PlotNames& names) {
  Plots plots;
  for (const Predictor& predictor : make_predictors(points)) {
    const std::vector<HeldOut>& held_out = predictor.held_out();
    if (held_out.empty()) continue;
    const auto [shortest, longest] =
        std::minmax_element(held_out.begin(), held_out.end(), [](const HeldOut& a, const HeldOut& b) {
          return a.merged->measures.step_s < b.merged->measures.step_s;
        });
    // The lines reach a little beyond the shortest and the longest measured step.
    const double from = milliseconds(shortest->merged->measures.step_s) / (1 + kBand);
    const double to = milliseconds(longest->merged->measures.step_s) * (1 + kBand);
    Plot plot{
        "held_out",
        "held_out",
        "Step time: predicted against measured",
        fmt::format("{}, transport {}", predictor.machine(), brief_text("transport", predictor.transport())),
        "Each point predicted without its own measurement. Lines: equal to the measured time, and 10 % "
        "above and below.",
        {"measured (ms)", Scale::log10},
        {"predicted (ms)", Scale::log10},
        {},
        marks(held_out, names)};
    plot.curves.push_back(proportional("as measured, +- 10 %", 1, from, to));
    for (const double factor : {1 + kBand, 1 - kBand})
      plot.curves.push_back(proportional("", factor, from, to));
    plots.push_back(std::move(plot));
  }
  return plots;
}

}  // namespace shardmark
