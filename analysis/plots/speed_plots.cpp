// Speed against memory: what a strategy costs in the one to win in the other.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/plots/rows.h"
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
  return {m.peak_bytes / cells::kMebi,
          m.samples_per_s,
          m.samples_per_s * slower,
          m.samples_per_s * faster,
          fmt::format("{}: {} samples/s, {} of a rank", ranks_text(merged.point.ranks),
                      format_number(m.samples_per_s, 4), format_bytes(m.peak_bytes)),
          is_unreliable(merged)};
}

}  // namespace

Plots speed_plots(const std::vector<MergedPoint>& points, const PlotNames& names) {
  Plots plots;
  for (const RowGroup& group : row_groups(points, names, is_shown)) {
    int64_t most = 0;
    for (const MergedPoint* merged : group.points) most = std::max(most, merged->point.ranks);
    std::map<Location, Plot> by_location;
    for (const MergedPoint* merged : group.points) {
      if (merged->point.ranks != most) continue;
      Plot& plot = by_location[location_of(*merged)];
      plot.about = group.setting + ", " + ranks_text(*merged);
      plot.curves.push_back({names.strategy(*merged), Form::dots, names.style(*merged), {point_of(*merged)}});
    }
    for (auto& [location, plot] : by_location)
      if (plot.curves.size() > 1)
        plots.push_back({"speed_and_memory",
                         "strategies",
                         "Speed against memory",
                         plot.about,
                         "Peak memory of the rank that needs most. Bars: from the 95 % interval of the step. "
                         "Hollow: unreliable.",
                         {"peak memory (MiB)"},
                         {"samples/s"},
                         {},
                         std::move(plot.curves)});
  }
  return plots;
}

}  // namespace shardmark
