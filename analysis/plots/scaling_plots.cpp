// Weak and strong scaling: throughput beside the ideal, and efficiency.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/plots/plots.h"
#include "analysis/stats/series.h"
#include "base/units.h"

namespace shardmark {
namespace {

// Samples (or tokens) of a step over its time, with the ends of the step's interval.
PlotPoint rate_point(const ScalingPoint& point) {
  const MergedPoint& merged = *point.merged;
  const Estimate step_s = step_estimate(merged.measures);
  const Throughput speed = throughput_of(merged);
  const double batch = static_cast<double>(merged.point.global_batch()) * speed.per_sample();
  const double rate = batch / step_s.value;
  return plot_point(point.units, rate_estimate(rate, step_s),
                    fmt::format("{}: {} {}, step {}", ranks_text(merged), format_number(rate, 4),
                                speed.unit(), format_seconds(step_s.value)),
                    is_unreliable(merged));
}

PlotPoint efficiency_point(const ScalingPoint& point) {
  const auto& [value, low, high] = point.efficiency;
  std::string text = fmt::format("{}: {:.1f} %", ranks_text(*point.merged), 100 * value);
  if (low < high) text += fmt::format(" ({:.1f} to {:.1f})", 100 * low, 100 * high);
  return plot_point(point.units, scaled(point.efficiency, 100), text, is_unreliable(*point.merged));
}

// A line from the fastest strategy on the fewest ranks, as if n ranks were n / n0 times as fast as those.
Curve ideal(const SeriesGroup& group) {
  PlotPoint base{0, 0};
  double most = 0;
  for (const ScalingSeries* series : group) {
    const PlotPoint first = rate_point(series->points.front());
    most = std::max(most, series->points.back().units);
    if (base.over == 0 || first.over < base.over || (first.over == base.over && first.value > base.value))
      base = first;
  }
  return {"ideal", Form::law, kNeutral, {{base.over, base.value}, {most, base.value * most / base.over}}};
}

void add_curves(Plot& plot, const SeriesGroup& group, const PlotNames& names,
                PlotPoint (*make_point)(const ScalingPoint&)) {
  bool any_unreliable = false;
  for (const ScalingSeries* series : group) {
    const MergedPoint& first = *series->points.front().merged;
    Curve curve{names.strategy(first), Form::measured, names.style(first), {}};
    for (const ScalingPoint& point : series->points) {
      curve.points.push_back(make_point(point));
      any_unreliable |= curve.points.back().unreliable;
    }
    plot.curves.push_back(std::move(curve));
  }
  if (any_unreliable) plot.note += " Hollow: unreliable, not used in fits.";
}

Plot rate_plot(const SeriesGroup& group, const PlotNames& names) {
  const bool weak = group.front()->scaling == Scaling::weak;
  Plot plot{weak ? "weak_scaling" : "strong_scaling",
            "scaling",
            weak ? "Weak scaling" : "Strong scaling",
            series_about(*group.front(), names),
            "Global batch / median step time. Bars: its 95 % interval. Ideal: from the fastest on the fewest "
            "ranks.",
            {unit_text(*group.front()), Scale::log2},
            {throughput_of(*group.front()->points.front().merged).unit(), Scale::log10},
            {},
            {ideal(group)}};
  add_curves(plot, group, names, rate_point);
  return plot;
}

Plot efficiency_plot(const SeriesGroup& group, const PlotNames& names) {
  const bool weak = group.front()->scaling == Scaling::weak;
  Plot plot{weak ? "weak_efficiency" : "strong_efficiency",
            "scaling",
            weak ? "Weak-scaling efficiency" : "Strong-scaling efficiency",
            series_about(*group.front(), names),
            weak ? "T(n0) / T(n)." : "n0 T(n0) / (n T(n)).",
            {unit_text(*group.front()), Scale::log2},
            {"efficiency (%)"},
            {},
            {},
            {{100, "ideal"}, {80, "80 %"}}};
  plot.note += " Bars: the range that the 95 % intervals of both steps allow.";
  add_curves(plot, group, names, efficiency_point);
  return plot;
}

}  // namespace

Plots scaling_plots(const std::vector<ScalingSeries>& all, const PlotNames& names) {
  Plots plots;
  for (const SeriesGroup& group : series_groups(all)) {
    plots.push_back(rate_plot(group, names));
    plots.push_back(efficiency_plot(group, names));
  }
  return plots;
}

}  // namespace shardmark
