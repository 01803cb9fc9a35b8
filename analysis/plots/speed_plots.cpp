// Speed against memory: what a strategy costs in the one to win in the other.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/frame/quantities.h"
#include "analysis/frame/rows.h"
#include "analysis/plots/memory_unit.h"
#include "analysis/plots/plots.h"
#include "analysis/render/axis.h"
#include "base/units.h"

namespace shardmark {
namespace {

bool is_shown(const MergedPoint& merged) {
  const Measures& m = merged.measures;
  return std::isfinite(m.samples_per_s) && std::isfinite(m.peak_bytes);
}

PlotPoint point_of(const MergedPoint& merged, const MemoryUnit& unit) {
  const Measures& m = merged.measures;
  const Throughput speed = throughput_of(merged);
  return plot_point(m.peak_bytes / unit.bytes, rate_estimate(speed.value(), step_estimate(m)),
                    fmt::format("{}: {}, {} of a rank", ranks_text(merged.point.ranks), speed.text(),
                                format_bytes(m.peak_bytes)),
                    is_unreliable(merged));
}

// Whether zero is so near that to show it costs little room.
bool is_near_zero(double low, double high) { return low <= 0.3 * high; }

// Both axes, to their data. Where they do not begin at zero, at least a twentieth of the value is seen: a
// difference of 0.1 % is then as small as it is.
void zoom(Plot& plot) {
  constexpr double kLeastSpan = 0.05, kRoom = 0.15;  // for names beside the marks
  double least_over = INFINITY, most_over = 0, least_value = INFINITY, most_value = 0;
  // Memory has no interval; the lower end of a speed's interval counts, as it decides how near zero is.
  for (const Curve& curve : plot.curves)
    for (const PlotPoint& point : curve.points) {
      least_over = std::min(least_over, point.over);
      most_over = std::max(most_over, point.over);
      least_value = std::min({least_value, point.value, std::isfinite(point.low) ? point.low : point.value});
      most_value = std::max(most_value, point.value);
    }
  for (Axis* axis : {&plot.over, &plot.value}) {
    axis->from_zero =
        axis == &plot.over ? is_near_zero(least_over, most_over) : is_near_zero(least_value, most_value);
    axis->least_span = kLeastSpan;
    axis->room = kRoom;
  }
  if (!plot.over.from_zero || !plot.value.from_zero)
    plot.note += plot.over.from_zero    ? " Speed does not start at zero."
                 : plot.value.from_zero ? " Memory does not start at zero."
                                        : " Neither axis starts at zero.";
}

}  // namespace

Plots speed_plots(const std::vector<MergedPoint>& points, const PlotNames& names) {
  Plots plots;
  for (const SettingPoints& setting : settings_on_most_ranks(points, names, is_shown)) {
    if (setting.points.size() < 2) continue;
    const MemoryUnit unit = memory_unit(setting.points);
    Plot plot{
        "speed_and_memory",
        "strategies",
        "Speed against memory",
        setting.name,
        "The upper left is best: fast, with little memory. Memory: the peak of the rank that needs most.",
        {fmt::format("{} ({})", quantity("peak_bytes").heading, unit.name)},
        {throughput_of(*setting.points.front()).unit()},
        {},
        {}};
    bool any_interval = false, any_unreliable = false;
    for (const MergedPoint* merged : setting.points) {
      plot.curves.push_back(
          {names.strategy(*merged), Form::dots, names.style(*merged), {point_of(*merged, unit)}});
      any_interval |= has_interval(plot.curves.back().points.front());
      any_unreliable |= plot.curves.back().points.front().unreliable;
    }
    plot.names_marks = true;
    zoom(plot);
    if (any_interval) plot.note += " Bars: from the 95 % interval of the step.";
    if (any_unreliable) plot.note += " Hollow: unreliable.";
    plots.push_back(std::move(plot));
  }
  return plots;
}

}  // namespace shardmark
