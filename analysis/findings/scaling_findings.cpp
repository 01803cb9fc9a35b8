// Efficiency that no machine explains: more ranks have more to exchange, so their efficiency should not pass
// that of fewer.
#include <fmt/format.h>

#include <cmath>
#include <set>
#include <tuple>

#include "analysis/findings/findings.h"
#include "analysis/frame/names.h"
#include "analysis/stats/scaling.h"

namespace shardmark {
namespace {

// What sampling leaves open of a step: a smaller excess is no finding, nor one that the intervals of both
// steps allow.
constexpr double kMostExcess = Sampling{}.precision;

bool is_usable(const ScalingPoint& point) {
  return !is_unreliable(*point.merged) && !point.merged->measures.has_few_steps();
}

// Step times as speed per rank, so that both scalings are compared in one way.
double speed_of(const ScalingSeries& series, const ScalingPoint& point, double step_s) {
  return 1 / (series.scaling == Scaling::weak ? step_s : step_s * point.units);
}

bool is_faster(const ScalingSeries& series, const ScalingPoint& more, const ScalingPoint& fewer) {
  const Measures &m = more.merged->measures, &f = fewer.merged->measures;
  if (!(speed_of(series, more, m.step_s) > (1 + kMostExcess) * speed_of(series, fewer, f.step_s)))
    return false;
  const double at_least = m.has_interval() ? m.step_high_s : m.step_s;
  const double at_most = f.has_interval() ? f.step_low_s : f.step_s;
  return speed_of(series, more, at_least) > speed_of(series, fewer, at_most);
}

std::string percent_text(const ScalingPoint& point) {
  return fmt::format("{:.1f} %", 100 * point.efficiency.value);
}

std::string kind_text(const ScalingSeries& series) {
  return std::string(to_text(series.scaling)) + " scaling over " + unit_text(series);
}

// Compares each point with the base, and with the lowest efficiency among the points before it. The lowest
// one is compared, because a single slow point makes all later ones look as if efficiency rose. A point
// that exceeds the base is reported for that alone.
void check(const ScalingSeries& series, const std::function<void(PointFinding&&)>& add) {
  const ScalingPoint& base = series.points.front();
  const ScalingPoint* lowest = nullptr;
  for (const ScalingPoint& point : series.points) {
    if (&point == &base || !is_usable(point)) continue;
    if (is_usable(base) && is_faster(series, point, base))
      add({point.merged, "efficiency above 100 %",
           fmt::format(
               "efficiency of {} is {}: with fewer ranks each should be as fast or faster, so look at "
               "the base, {}",
               kind_text(series), percent_text(point), ranks_text(*base.merged))});
    else if (lowest != nullptr && is_faster(series, point, *lowest))
      add({point.merged, "efficiency rises",
           fmt::format("efficiency of {} rises from {} on {} to {}: was something else slow on {}?",
                       kind_text(series), percent_text(*lowest), ranks_text(*lowest->merged),
                       percent_text(point), ranks_text(*lowest->merged))});
    if (lowest == nullptr || point.efficiency.value < lowest->efficiency.value) lowest = &point;
  }
}

}  // namespace

// A point of two series is reported once for each scaling and kind.
void add_scaling(const std::vector<MergedPoint>& points, std::vector<PointFinding>& findings) {
  std::set<std::tuple<Scaling, const MergedPoint*, std::string>> known;
  for (const ScalingSeries& series : unfitted_series(points))
    check(series, [&](PointFinding&& finding) {
      if (known.emplace(series.scaling, finding.about, finding.kind).second)
        findings.push_back(std::move(finding));
    });
}

}  // namespace shardmark
