// Weak and strong scaling: how much faster with more ranks, beside the ideal, and how efficient.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/plots/plots.h"
#include "analysis/scaling.h"
#include "base/units.h"

namespace shardmark {
namespace {

using Group = std::vector<ScalingSeries>;  // series of one family and batch, one per strategy

std::vector<Group> groups_of(const std::vector<MergedPoint>& points, Scaling scaling) {
  std::map<std::pair<std::string, int64_t>, size_t> known;
  std::vector<Group> groups;  // in the order of their first points
  for (ScalingSeries& series : scaling_series(points, scaling)) {
    const Point& p = series.front()->point;
    const int64_t fixed = scaling == Scaling::weak ? p.training.batch_size : p.global_batch();
    const auto [found, is_new] = known.try_emplace({series.front()->family, fixed}, groups.size());
    if (is_new) groups.emplace_back();
    groups[found->second].push_back(std::move(series));
  }
  // Points of a weak sweep make short strong series by chance: they are left to the table where there are
  // longer ones.
  const auto length = [](const Group& group) {
    size_t longest = 0;
    for (const ScalingSeries& series : group) longest = std::max(longest, series.size());
    return longest;
  };
  size_t longest = 0;
  for (const Group& group : groups) longest = std::max(longest, length(group));
  std::erase_if(groups, [&](const Group& group) { return length(group) < std::min<size_t>(3, longest); });
  return groups;
}

std::string about(Scaling scaling, const Group& group, const PlotNames& names) {
  const MergedPoint& first = *group.front().front();
  return names.family(first) + (scaling == Scaling::weak
                                    ? fmt::format(", batch {} per rank", first.point.training.batch_size)
                                    : fmt::format(", global batch {}", first.point.global_batch()));
}

// Samples of a step over its time, with the ends of the step's interval.
PlotPoint rate_point(const MergedPoint& merged) {
  const Measures& m = merged.measures;
  const auto batch = static_cast<double>(merged.point.global_batch());
  PlotPoint point{static_cast<double>(merged.point.ranks),
                  batch / m.step_s,
                  batch / m.step_high_s,
                  batch / m.step_low_s,
                  "",
                  m.oversubscribed};
  point.text = fmt::format("{}: {} samples/s, step {}", ranks_text(merged.point.ranks),
                           format_number(point.value, 4), format_seconds(m.step_s));
  return point;
}

PlotPoint efficiency_point(Scaling scaling, const MergedPoint& base, const MergedPoint& merged) {
  const Measures &b = base.measures, &m = merged.measures;
  const auto percent = [&](double base_step_s, double step_s) {
    return 100 * (scaling == Scaling::weak
                      ? weak_efficiency(base_step_s, step_s)
                      : strong_efficiency(base.point.ranks, base_step_s, merged.point.ranks, step_s));
  };
  PlotPoint point{static_cast<double>(merged.point.ranks), percent(b.step_s, m.step_s)};
  if (&base != &merged) {
    point.low = percent(b.step_low_s, m.step_high_s);
    point.high = percent(b.step_high_s, m.step_low_s);
  }
  point.doubtful = m.oversubscribed;
  point.text = fmt::format("{}: {:.1f} %", ranks_text(merged.point.ranks), point.value);
  if (&base != &merged) point.text += fmt::format(" ({:.1f} to {:.1f})", point.low, point.high);
  return point;
}

// From the fastest strategy on the fewest ranks: n/n0 times its rate.
Curve ideal(const Group& group) {
  const MergedPoint* base = nullptr;
  int64_t most = 0;
  const auto rate = [](const MergedPoint& m) { return rate_point(m).value; };
  for (const ScalingSeries& series : group) {
    most = std::max(most, series.back()->point.ranks);
    const MergedPoint* first = series.front();
    if (base == nullptr || first->point.ranks < base->point.ranks ||
        (first->point.ranks == base->point.ranks && rate(*first) > rate(*base)))
      base = first;
  }
  const auto n0 = static_cast<double>(base->point.ranks), n = static_cast<double>(most);
  return {"ideal", Form::law, kNeutral, {{n0, rate(*base)}, {n, rate(*base) * n / n0}}};
}

bool any_doubtful(const Plot& plot) {
  return std::any_of(plot.curves.begin(), plot.curves.end(), [](const Curve& curve) {
    return std::any_of(curve.points.begin(), curve.points.end(),
                       [](const PlotPoint& p) { return p.doubtful; });
  });
}

Plot rate_plot(Scaling scaling, const Group& group, const PlotNames& names) {
  const std::string word = scaling == Scaling::weak ? "weak" : "strong";
  Plot plot{word + "_scaling",
            word + "_scaling",
            scaling == Scaling::weak ? "Weak scaling" : "Strong scaling",
            about(scaling, group, names),
            "Global batch / median step time. Bars: its 95 % interval. Ideal: from the fastest on the fewest "
            "ranks.",
            {"ranks", Scale::log2},
            {"samples/s", Scale::log10},
            {},
            {ideal(group)}};
  for (const ScalingSeries& series : group) {
    Curve curve{names.strategy(*series.front()), Form::measured, names.style(*series.front()), {}};
    for (const MergedPoint* merged : series) curve.points.push_back(rate_point(*merged));
    plot.curves.push_back(std::move(curve));
  }
  if (any_doubtful(plot)) plot.note += " Hollow: more ranks than cores.";
  return plot;
}

Plot efficiency_plot(Scaling scaling, const Group& group, const PlotNames& names) {
  const std::string word = scaling == Scaling::weak ? "weak" : "strong";
  Plot plot{word + "_efficiency",
            word + "_scaling",
            scaling == Scaling::weak ? "Weak-scaling efficiency" : "Strong-scaling efficiency",
            about(scaling, group, names),
            scaling == Scaling::weak ? "T(n0) / T(n)." : "n0 T(n0) / (n T(n)).",
            {"ranks", Scale::log2},
            {"efficiency (%)"},
            {},
            {},
            {{100, "ideal"}, {80, "80 %"}}};
  plot.note += " Bars: what the 95 % intervals of both steps allow at most.";
  for (const ScalingSeries& series : group) {
    Curve curve{names.strategy(*series.front()), Form::measured, names.style(*series.front()), {}};
    for (const MergedPoint* merged : series)
      curve.points.push_back(efficiency_point(scaling, *series.front(), *merged));
    plot.curves.push_back(std::move(curve));
  }
  if (any_doubtful(plot)) plot.note += " Hollow: more ranks than cores.";
  return plot;
}

}  // namespace

Plots scaling_plots(const std::vector<MergedPoint>& points, const PlotNames& names) {
  Plots plots;
  for (Scaling scaling : {Scaling::weak, Scaling::strong}) {
    for (const Group& group : groups_of(points, scaling)) {
      plots.push_back(rate_plot(scaling, group, names));
      plots.push_back(efficiency_plot(scaling, group, names));
    }
  }
  return plots;
}

}  // namespace shardmark
