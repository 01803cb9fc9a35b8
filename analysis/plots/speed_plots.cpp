// Speed against memory: what a strategy costs in the one to win in the other.
#include <fmt/format.h>

#include <cmath>

#include "analysis/frame/rows.h"
#include "analysis/plots/plots.h"
#include "analysis/table/cells.h"
#include "base/units.h"

namespace shardmark {
namespace {

bool is_shown(const MergedPoint& merged) {
  const Measures& m = merged.measures;
  return std::isfinite(m.samples_per_s) && std::isfinite(m.peak_bytes);
}

PlotPoint point_of(const MergedPoint& merged) {
  const Measures& m = merged.measures;
  const double faster = m.step_s / m.step_low_s, slower = m.step_s / m.step_high_s;
  const Throughput speed = throughput_of(merged);
  return {m.peak_bytes / cells::kMebi,
          speed.value(),
          speed.value() * slower,
          speed.value() * faster,
          fmt::format("{}: {}, {} of a rank", ranks_text(merged.point.ranks), speed.text(),
                      format_bytes(m.peak_bytes)),
          is_unreliable(merged)};
}

}  // namespace

Plots speed_plots(const std::vector<MergedPoint>& points, const PlotNames& names) {
  Plots plots;
  for (const SettingPoints& setting : settings_on_most_ranks(points, names, is_shown)) {
    if (setting.points.size() < 2) continue;
    Plot plot{"speed_and_memory",
              "strategies",
              "Speed against memory",
              setting.name,
              "Peak memory of the rank that needs most. Bars: from the 95 % interval of the step. Hollow: "
              "unreliable.",
              {"peak memory (MiB)"},
              {throughput_of(*setting.points.front()).unit()},
              {},
              {}};
    for (const MergedPoint* merged : setting.points)
      plot.curves.push_back({names.strategy(*merged), Form::dots, names.style(*merged), {point_of(*merged)}});
    plots.push_back(std::move(plot));
  }
  return plots;
}

}  // namespace shardmark
