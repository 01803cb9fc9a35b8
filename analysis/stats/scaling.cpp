#include "analysis/stats/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include "analysis/frame/groups.h"
#include "analysis/frame/names.h"

namespace shardmark {
namespace {

struct Group {
  Scaling scaling;
  int64_t fixed_batch;
  PointList points;  // by ranks, then nodes
};

bool is_timed(const MergedPoint& merged) {
  return std::isfinite(merged.measures.step_s) && merged.measures.step_s > 0;
}

// Points that differ in ranks and nodes alone, in the order of their first points.
std::vector<Group> sweeps_over_ranks(const std::vector<MergedPoint>& points, Scaling scaling) {
  const auto fixed_batch = [scaling](const MergedPoint& one) {
    return scaling == Scaling::weak ? one.point.training.batch_size : one.point.global_batch();
  };
  std::vector<Group> all;
  for (PointList& group : groups_of(
           training_points(points, [](const auto& one) { return !is_replicas(one) && is_timed(one); }),
           [&](const MergedPoint& one) {
             return std::pair(series_key(one, {"ranks", "batch_size"}), fixed_batch(one));
           },
           [](const MergedPoint& one) { return std::tuple(one.point.ranks, one.nodes); }))
    all.push_back({scaling, fixed_batch(*group.front()), std::move(group)});
  return all;
}

ScalingPoint scaling_point(Scaling scaling, const ScalingPoint& base, const MergedPoint& merged,
                           double units) {
  const Estimate b = step_estimate(base.merged->measures), m = step_estimate(merged.measures);
  ScalingPoint point;
  point.merged = &merged;
  point.units = units;
  // Weak scaling: each rank has the same work, so the ideal step is that of the base. Strong scaling: the
  // work is shared out, so the ideal step is shorter by the growth.
  const double growth = units / base.units;
  point.efficiency = quotient(scaled(b, scaling == Scaling::weak ? 1 : 1 / growth), m);
  if (base.units == 1) point.speed_up = quotient(scaled(b, scaling == Scaling::weak ? units : 1), m);
  // The base against itself is exactly 1. The quotient of its two equal intervals would suggest an error.
  if (base.merged == &merged) {
    point.efficiency = {1};
    if (base.units == 1) point.speed_up = {1};
  }
  if (scaling == Scaling::strong) point.karp_flatt = karp_flatt(point.speed_up.value, units);
  return point;
}

// Whether links within a node and between nodes both take part.
bool is_mixed(const ScalingSeries& series) {
  const auto lies_on = [&](bool one) {
    return std::any_of(series.points.begin(), series.points.end(), [&](const ScalingPoint& p) {
      return one ? p.merged->nodes == 1 : p.merged->nodes > 1;
    });
  };
  return series.span == Span::all && lies_on(true) && lies_on(false);
}

// Ranks on a full node of a mixed series; 0 where no point tells.
double ranks_of_node(const ScalingSeries& series) {
  int64_t most = 0;
  for (const ScalingPoint& point : series.points)
    if (point.merged->nodes > 1) most = std::max(most, point.merged->ranks_per_node);
  return static_cast<double>(most);
}

// A law of two levels knows ranks that fill one node before the next.
bool fills_nodes(const ScalingPoint& point, double node) {
  return node == 0 || static_cast<double>(point.merged->nodes) == std::ceil(point.units / node);
}

std::vector<TimedCount> fitted_times(const ScalingSeries& series, double node) {
  std::vector<TimedCount> times;
  for (const ScalingPoint& point : series.points)
    if (!is_unreliable(*point.merged) && fills_nodes(point, node))
      for (const Estimate& step_s : point.merged->launches) times.push_back({point.units, step_s});
  return times;
}

// Ranks that a node has, as far as points on several nodes tell; infinite where there are none.
double most_in_node(const PointList& points) {
  int64_t most = 0;
  for (const MergedPoint* point : points)
    if (point->nodes > 1) most = std::max(most, point->ranks_per_node);
  return most > 0 ? static_cast<double>(most) : std::numeric_limits<double>::infinity();
}

void add_fits(ScalingSeries& series, const PointList& group) {
  const ScalingLaw first = series.scaling == Scaling::strong ? ScalingLaw::amdahl : ScalingLaw::gustafson;
  const bool mixed = is_mixed(series);
  const double node = mixed ? ranks_of_node(series) : 0;
  const std::vector<TimedCount> times = fitted_times(series, node);
  for (const ScalingLaw law : {first, ScalingLaw::usl}) {
    ScalingFit fit(ScalingForm{law, series.scaling, node});
    if (mixed && node == 0)
      fit.refused =
          "ranks of one node and of several use different links, and the nodes have unequal rank counts";
    else
      fit = fit_scaling(fit, times);
    // Counts that are suggested for a series within a node must find room on a node.
    if (series.span == Span::node)
      std::erase_if(fit.further, [&](double units) { return units > most_in_node(group); });
    if (fit.refused.empty()) fit.held_out = hold_out_largest(fit, times);
    series.fits.push_back(std::move(fit));
  }
}

// Between the last count at 80 % or more and the first below it, on a line through both.
Crossing measured_crossing(const ScalingSeries& series) {
  const ScalingPoint* above = nullptr;
  for (const ScalingPoint& point : series.points) {
    if (is_unreliable(*point.merged)) continue;
    const bool is_below = point.efficiency.value < Crossing::kEfficiency;
    if (is_below && above == nullptr) return {};  // it fell below before the first reliable count
    if (is_below) {
      const double part = (above->efficiency.value - Crossing::kEfficiency) /
                          (above->efficiency.value - point.efficiency.value);
      const auto low = static_cast<double>(above->merged->point.ranks);
      const auto high = static_cast<double>(point.merged->point.ranks);
      return {{low + part * (high - low), low, high}, "measured"};
    }
    above = &point;
  }
  return {};
}

// With as many parameters as counts any curve comes near.
bool describes_better(const ScalingFit& fit, const ScalingFit& other) {
  return fit.lack.degrees > 0 && fit.deviation < other.deviation / 2;
}

// A fit with fewer unknowns goes first where both describe the points equally well.
Crossing crossing(const ScalingSeries& series) {
  if (Crossing measured = measured_crossing(series); !measured.from.empty()) return measured;
  const ScalingFit* best = nullptr;
  for (const ScalingFit& fit : series.fits)
    if (fit.refused.empty() && (best == nullptr || describes_better(fit, *best))) best = &fit;
  if (best == nullptr) return {};
  const Estimate units = fitted_crossing(*best, series.points.front().units, Crossing::kEfficiency);
  const double reach = Crossing::kReach * series.points.back().units;
  const auto ranks = [&](double u) {
    return u > reach ? std::numeric_limits<double>::infinity()
                     : u * static_cast<double>(series.ranks_per_unit);
  };
  return {{ranks(units.value), ranks(units.low), ranks(units.high)}, to_text(*best)};
}

ScalingSeries make_series(const Group& group, Span span, int64_t ranks_per_unit, const PointList& points,
                          bool is_fitted) {
  ScalingSeries series{group.scaling, span, ranks_per_unit, group.fixed_batch, {}, {}, {}};
  ScalingPoint base;
  base.merged = points.front();
  base.units = static_cast<double>(points.front()->point.ranks) / static_cast<double>(ranks_per_unit);
  for (const MergedPoint* merged : points) {
    const double units = static_cast<double>(merged->point.ranks) / static_cast<double>(ranks_per_unit);
    series.points.push_back(scaling_point(group.scaling, base, *merged, units));
  }
  if (!is_fitted) return series;
  add_fits(series, group.points);
  series.below_80 = crossing(series);
  return series;
}

// Makes up to three kinds of series of a sweep: ranks of one node; whole nodes, a series for each number of
// ranks on them; and all ranks. The last kind is made only if none of the others holds all points. Points
// are in the order of ranks, then nodes, so the first point of each number of ranks is the one on the fewest
// nodes.
void add_series(const Group& group, bool is_fitted, std::vector<ScalingSeries>& all) {
  const PointList& points = group.points;
  const auto add = [&](Span span, int64_t ranks_per_unit, const PointList& some) {
    all.push_back(make_series(group, span, ranks_per_unit, some, is_fitted));
  };
  const PointList within = those(points, [](const auto& p) { return p.nodes == 1; });
  if (within.size() >= 2) add(Span::node, 1, within);
  std::set<int64_t> per_node;
  for (const MergedPoint* p : points)
    if (p->nodes > 1 && p->ranks_per_node > 0) per_node.insert(p->ranks_per_node);
  bool covered = within.size() == points.size();
  for (const int64_t ranks : per_node) {
    const PointList across = those(points, [&](const auto& p) { return p.ranks_per_node == ranks; });
    covered |= across.size() == points.size();
    if (across.size() >= 2) add(Span::nodes, ranks, across);
  }
  if (covered) return;
  int64_t last = 0;
  const PointList densest =
      those(points, [&](const auto& p) { return std::exchange(last, p.point.ranks) != p.point.ranks; });
  if (densest.size() >= 2 && densest != within) add(Span::all, 1, densest);
}

std::vector<ScalingSeries> series_of(const std::vector<MergedPoint>& points, bool is_fitted) {
  std::vector<ScalingSeries> all;
  for (const Scaling scaling : {Scaling::weak, Scaling::strong})
    for (const Group& group : sweeps_over_ranks(points, scaling)) add_series(group, is_fitted, all);
  return all;
}

}  // namespace

std::vector<ScalingSeries> scaling_series(const std::vector<MergedPoint>& points) {
  return series_of(points, true);
}

std::vector<ScalingSeries> unfitted_series(const std::vector<MergedPoint>& points) {
  return series_of(points, false);
}

Efficiencies efficiencies_of(const std::vector<ScalingSeries>& scaling) {
  Efficiencies efficiencies;
  for (const ScalingSeries& series : scaling) {
    const int64_t base = series.points.front().merged->point.ranks;
    for (const ScalingPoint& point : series.points) {
      if (point.merged->point.ranks <= base) continue;
      const auto [found, is_new] =
          efficiencies.try_emplace({series.scaling, point.merged}, Rated{&point, base});
      if (!is_new && base < found->second.base_ranks) found->second = {&point, base};
    }
  }
  return efficiencies;
}

double karp_flatt(double speedup, double units) {
  if (units <= 1) return Measures::kNone;
  const double share = 1 / units;
  return (1 / speedup - share) / (1 - share);
}

std::string batch_text(const ScalingSeries& series) {
  return batch_text(series.fixed_batch, series.scaling == Scaling::strong);
}

std::string unit_text(const ScalingSeries& series) {
  switch (series.span) {
    case Span::node:
      return "ranks of one node";
    case Span::nodes:
      return fmt::format("nodes of {} rank{}", series.ranks_per_unit, series.ranks_per_unit == 1 ? "" : "s");
    case Span::all:
      return "ranks";
  }
  return "";
}

std::string_view to_text(Scaling scaling) { return scaling == Scaling::weak ? "weak" : "strong"; }

}  // namespace shardmark
