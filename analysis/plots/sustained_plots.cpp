// Sustained runs over time: step, clock and temperature, with the band that the ranks make.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/plots/plots.h"
#include "analysis/stats/sustained.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

struct Kind {
  const char* series;
  const char* title;
  const char* label;
  double scale;
};
constexpr Kind kKinds[] = {
    {"interval_time", "Step time of a sustained run", "step time (ms)", 1e3},
    {"interval_clock", "Clock in a sustained run", "clock (MHz)", 1},
    {"interval_temperature", "Temperature in a sustained run", "temperature (C)", 1},
};

// One interval: median of the ranks, 10th to 90th percentile.
PlotPoint point_of(const Series& series, int64_t k, double end_s, const Kind& kind) {
  std::vector<double> ranks;
  for (int64_t rank = 0; rank < series.rows; ++rank)
    if (std::isfinite(series.at(rank, k))) ranks.push_back(series.at(rank, k) * kind.scale);
  if (ranks.empty()) return {};
  PlotPoint point{end_s / 60, median(ranks)};
  // The bars show how far ranks are apart; they are no confidence interval.
  if (ranks.size() > 1) {
    point.low = quantile(ranks, 0.1);
    point.high = quantile(ranks, 0.9);
  }
  point.text = fmt::format("until {}: {:.4g}, ranks from {:.4g} to {:.4g}", duration_text(end_s), point.value,
                           quantile(ranks, 0.1), quantile(ranks, 0.9));
  return point;
}

}  // namespace

Plots sustained_plots(const std::vector<MergedPoint>& points) {
  Plots plots;
  for (const Sustained& run : sustained_runs(points))
    for (const Kind& kind : kKinds) {
      const Series* series = run.record->series(kind.series);
      if (series == nullptr || series->columns != static_cast<int64_t>(run.ends_s.size())) continue;
      Curve curve{"median over the ranks", Form::measured, 0, {}};
      for (int64_t k = 0; k < series->columns; ++k) {
        PlotPoint point = point_of(*series, k, run.ends_s[static_cast<size_t>(k)], kind);
        if (!point.text.empty()) curve.points.push_back(std::move(point));
      }
      if (curve.points.empty()) continue;
      plots.push_back({kind.series,
                       "sustained",
                       kind.title,
                       brief_text(run.about->point),
                       "One marker per interval, at its end. Bars: 10th to 90th percentile over the ranks.",
                       {"time since the timed steps began (min)"},
                       {kind.label, Scale::linear, false},
                       {},
                       {std::move(curve)}});
    }
  return plots;
}

}  // namespace shardmark
