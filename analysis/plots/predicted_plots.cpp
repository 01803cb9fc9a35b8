// Throughput that was predicted for other numbers of ranks.
#include <fmt/format.h>

#include <map>

#include "analysis/frame/strategy_styles.h"
#include "analysis/plots/plots.h"
#include "analysis/predict/tables.h"
#include "base/units.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

PlotPoint point_of(const PredictedPoint& one) {
  const Point& p = one.prediction.point;
  const Estimate& step_s = one.prediction.step_s;
  const Throughput speed = throughput_of(one);
  const double value = speed.value() / static_cast<double>(p.ranks);
  return {static_cast<double>(p.ranks), value, value * step_s.value / step_s.high,
          value * step_s.value / step_s.low,
          fmt::format("{}: {}, step {}", ranks_text(p.ranks), speed.text(), format_seconds(step_s.value))};
}

Curve& curve_of(Plot& plot, const Choice& strategy) {
  const std::string name = brief_text("strategy", strategy);
  for (Curve& curve : plot.curves)
    if (curve.name == name) return curve;
  return plot.curves.emplace_back(
      Curve{name, Form::measured, style_of_strategy(name, static_cast<int>(plot.curves.size())), {}});
}

}  // namespace

// One for each family and batch per rank; with a global batch the batch follows from the ranks, so those are
// one plot.
Plots predicted_plots(const std::vector<PredictedPoint>& predicted, const PlotNames& names) {
  Plots plots;
  std::map<std::string, size_t> known;
  for (const PredictedPoint& one : predicted) {
    if (!one.prediction.unknown.empty()) continue;
    const std::string batch =
        one.global_batch > 0 ? fmt::format("global batch {}", one.global_batch)
                             : fmt::format("batch {} per rank", one.prediction.point.training.batch_size);
    const auto [found, is_new] = known.try_emplace(one.like->family + batch, plots.size());
    if (is_new)
      plots.push_back(
          {"predicted",
           "predictions",
           "Predicted throughput of a rank",
           names.family(*one.like) + ", " + batch,
           "A level line would be ideal: no rank trains slower for there being more. Nothing here was "
           "measured. Bars: the prediction's 95 % interval, where it has one.",
           {"ranks", Scale::log2},
           {throughput_of(one).unit() + std::string(" of a rank")},
           {},
           {}});
    curve_of(plots[found->second], one.prediction.point.training.strategy).points.push_back(point_of(one));
  }
  return plots;
}

}  // namespace shardmark
