// Throughput that was predicted for other numbers of ranks.
#include <fmt/format.h>

#include "analysis/frame/groups.h"
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
  return plot_point(
      static_cast<double>(p.ranks), rate_estimate(value, step_s),
      fmt::format("{}: {}, step {}", ranks_text(p.ranks), speed.text(), format_seconds(step_s.value)));
}

Curve& curve_of(Plot& plot, const Choice& strategy) {
  const std::string name = brief_text("strategy", strategy);
  for (Curve& curve : plot.curves)
    if (curve.name == name) return curve;
  return plot.curves.emplace_back(
      Curve{name, Form::measured, style_of_strategy(name, static_cast<int>(plot.curves.size())), {}});
}

std::string batch_of(const PredictedPoint& one) {
  return one.global_batch > 0 ? batch_text(one.global_batch, true)
                              : batch_text(one.prediction.point.training.batch_size, false);
}

}  // namespace

// One for each family and batch per rank; with a global batch the batch follows from the ranks, so those are
// one plot.
Plots predicted_plots(const std::vector<PredictedPoint>& predicted, const PlotNames& names) {
  std::vector<const PredictedPoint*> known;
  for (const PredictedPoint& one : predicted)
    if (one.prediction.unknown.empty()) known.push_back(&one);
  Plots plots;
  for (const auto& group : groups_of(
           known, [](const PredictedPoint& one) { return std::pair(one.like->family, batch_of(one)); })) {
    Plot& plot = plots.emplace_back(
        Plot{"predicted",
             "predictions",
             "Predicted throughput of a rank",
             names.family(*group.front()->like) + ", " + batch_of(*group.front()),
             "A level line would be ideal: no rank trains slower for there being more. Nothing here was "
             "measured. Bars: the prediction's 95 % interval, where it has one.",
             {"ranks", Scale::log2},
             {throughput_of(*group.front()).unit() + std::string(" of a rank")},
             {},
             {}});
    for (const PredictedPoint* one : group)
      curve_of(plot, one->prediction.point.training.strategy).points.push_back(point_of(*one));
  }
  return plots;
}

}  // namespace shardmark
