// Measured speed-ups with the fitted laws of scaling, drawn on beyond the measured counts.
#include <fmt/format.h>

#include <cmath>

#include "analysis/plots/plots.h"
#include "analysis/stats/series.h"
#include "base/units.h"

namespace shardmark {
namespace {

constexpr int kPointsPerDoubling = 6;  // of a smooth curve
constexpr double kBeyond = 4;          // times the measured counts

// "Amdahl, s = 0.91 % (0.77 to 1.05)"; a parameter that is held at 0 has no interval
std::string law_name(const ScalingFit& fit) {
  std::string name = to_text(fit);
  for (const auto& [symbol, e] : fit.parameters) {
    const bool is_percent = symbol != "beta";
    const auto digits = [&](double value) {
      return is_percent ? fmt::format("{:.2f}", 100 * value) : fmt::format("{:.3g}", value);
    };
    name += fmt::format(", {} = {}{}", symbol, digits(e.value), is_percent ? " %" : "");
    if (!std::isnan(e.low)) name += fmt::format(" ({} to {})", digits(e.low), digits(e.high));
  }
  return name;
}

// The fits of a series begin with the law of one parameter, so the first that was not refused is drawn: the
// USL only if the simpler law does not describe the series. A speed-up over one unit needs a series that
// starts at one. nullptr if nothing can be drawn.
const ScalingFit* fit_to_draw(const ScalingSeries& series) {
  for (const ScalingFit& fit : series.fits)
    if (fit.refused.empty() && series.points.front().units == 1) return &fit;
  return nullptr;
}

Curve law_curve(const ScalingFit& fit, int style, double most) {
  Curve curve{"", Form::law, style, {}};
  const auto count = std::lround(std::log2(most * kBeyond) * kPointsPerDoubling);
  for (int64_t i = 0; i <= count; ++i) {
    const double n = std::pow(2, static_cast<double>(i) / kPointsPerDoubling);
    curve.points.push_back({n, fitted_speed_up(fit, n)});
  }
  return curve;
}

Curve measured_curve(const ScalingSeries& series, const ScalingFit& fit, const PlotNames& names) {
  const MergedPoint& first = *series.points.front().merged;
  Curve curve{names.strategy(first) + ": " + law_name(fit), Form::dots, names.style(first), {}};
  for (const ScalingPoint& point : series.points) {
    curve.points.push_back(plot_point(
        point.units, point.speed_up,
        fmt::format("{}: speed-up {}", ranks_text(*point.merged), format_number(point.speed_up.value, 3)),
        is_unreliable(*point.merged)));
  }
  return curve;
}

}  // namespace

Plots law_plots(const std::vector<ScalingSeries>& all, const PlotNames& names) {
  Plots plots;
  for (const SeriesGroup& group : series_groups(all)) {
    Plot plot{
        "laws",
        "scaling_laws",
        group.front()->scaling == Scaling::weak ? "Weak scaling: fitted laws" : "Strong scaling: fitted laws",
        series_about(*group.front(), names),
        "Markers: measured. Lines: the fitted law, up to four times the measured counts; 95 % intervals in "
        "brackets.",
        {unit_text(*group.front()), Scale::log2},
        {"speed-up over one", Scale::log2},
        {},
        {}};
    for (const ScalingSeries* series : group) {
      const ScalingFit* fit = fit_to_draw(*series);
      if (fit == nullptr) continue;
      plot.curves.push_back(measured_curve(*series, *fit, names));
      plot.curves.push_back(
          law_curve(*fit, names.style(*series->points.front().merged), series->points.back().units));
    }
    if (!plot.curves.empty()) plots.push_back(std::move(plot));
  }
  return plots;
}

}  // namespace shardmark
