// Bus bandwidth and time of the collectives over message size, with the sizes that training really moves.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "analysis/frame/known.h"
#include "analysis/plots/plots.h"
#include "base/units.h"
#include "specs/collectives.h"

namespace shardmark {
namespace {

using Sizes = std::map<int64_t, const MergedPoint*>;  // by bytes
using Operations = std::map<std::string, Sizes>;      // by name, with the reduction where it is no sum
using GroupKey = std::tuple<int64_t, Location, std::string, std::string>;  // ranks, type, series_key()
constexpr const char* kOutOfPlace = ", out of place";

// The style is the operation's place in the table of operations, so an operation looks the same in every
// plot.
int style_of(const std::string& operation) {
  const auto* const found = specs::find_operation(operation.substr(0, operation.find_first_of(" ,")));
  const auto& all = specs::operations();
  return static_cast<int>(found == nullptr ? std::ssize(all) : found - all.data());
}

bool has_all(const Sizes& sizes, const Sizes& others) {
  return std::all_of(others.begin(), others.end(),
                     [&](const auto& one) { return sizes.contains(one.first); });
}

// A plot for each setting, a curve for each operation and place. A curve out of place is left out if the
// one in place has all of its sizes: training works in place, and twice as many curves are hard to tell
// apart.
std::map<GroupKey, Operations> collective_groups(const std::vector<MergedPoint>& points) {
  std::map<GroupKey, Operations> groups;
  for (const MergedPoint& merged : points) {
    if (!is_collective(merged)) continue;
    const CollectivePoint& c = merged.point.collective;
    const GroupKey group = {merged.point.ranks, location_of(merged), c.dtype,
                            series_key(merged, {"operation", "reduction", "parts", "bytes", "in_place"})};
    groups[group][operation_text(c) + (c.in_place ? "" : kOutOfPlace)][c.bytes] = &merged;
  }
  for (auto& [key, operations] : groups)
    std::erase_if(operations, [&operations](const auto& one) {
      const auto& [name, sizes] = one;
      if (!name.ends_with(kOutOfPlace)) return false;
      const auto in_place = operations.find(name.substr(0, name.rfind(kOutOfPlace)));
      return in_place != operations.end() && has_all(in_place->second, sizes);
    });
  return groups;
}

// Bytes of each bucket that ddp reduces there.
std::set<int64_t> bucket_sizes(const std::vector<MergedPoint>& points, const Location& location) {
  std::set<int64_t> sizes;
  for (const MergedPoint& merged : points)
    if (is_training(merged) && location_of(merged) == location)
      for (const int64_t bytes : known_bucket_bytes(merged.point)) sizes.insert(bytes);
  return sizes;
}

PlotPoint bandwidth_point(const MergedPoint& merged) {
  const auto bytes = static_cast<double>(merged.point.collective.bytes);
  const Measures& m = merged.measures;
  return plot_point(bytes, rate_estimate(m.busbw_gb_s, step_estimate(m)),
                    fmt::format("{}: {} GB/s", format_bytes(bytes), format_number(m.busbw_gb_s, 3)),
                    is_unreliable(merged));
}

PlotPoint time_point(const MergedPoint& merged) {
  const auto bytes = static_cast<double>(merged.point.collective.bytes);
  const Estimate step_s = step_estimate(merged.measures);
  return plot_point(bytes, scaled(step_s, 1e6), format_bytes(bytes) + ": " + format_seconds(step_s.value),
                    is_unreliable(merged));
}

Plot make_plot(Plot plot, const Operations& operations, const std::set<int64_t>& buckets,
               PlotPoint (*make_point)(const MergedPoint&)) {
  for (const auto& [name, sizes] : operations) {
    // Two sizes far from each other say nothing about those in between.
    Curve curve{name, sizes.size() > 2 ? Form::measured : Form::dots, style_of(name), {}};
    for (const auto& [bytes, merged] : sizes) curve.points.push_back(make_point(*merged));
    plot.curves.push_back(std::move(curve));
  }
  std::stable_sort(plot.curves.begin(), plot.curves.end(),
                   [](const Curve& a, const Curve& b) { return a.style < b.style; });
  for (const int64_t bytes : buckets)
    plot.references.push_back(
        {static_cast<double>(bytes), bytes == *buckets.rbegin() ? "buckets" : "", false});
  plot.note += " Bars: 95 % interval of the median.";
  if (!buckets.empty()) plot.note += " Vertical lines: sizes of the gradient buckets that ddp reduced here.";
  return plot;
}

}  // namespace

Plots collective_plots(const std::vector<MergedPoint>& points) {
  Plots plots;
  for (const auto& [key, operations] : collective_groups(points)) {
    const MergedPoint& first = *operations.begin()->second.begin()->second;
    const std::string table = "collectives";
    const std::string about = collective_setting_text(first);
    const std::set<int64_t> buckets = bucket_sizes(points, location_of(first));
    const Axis size{"message size", Scale::log2, true, true};
    plots.push_back(make_plot({"busbw",
                               table,
                               "Bus bandwidth of the collectives",
                               about,
                               "Algorithm bandwidth x the operation's factor, as nccl-tests defines it.",
                               size,
                               {"bus bandwidth (GB/s)", Scale::log10},
                               {},
                               {}},
                              operations, buckets, bandwidth_point));
    plots.push_back(make_plot({"latency",
                               table,
                               "Time of the collectives",
                               about,
                               "Median over the operations of the slowest rank's time.",
                               size,
                               {"time (us)", Scale::log10},
                               {},
                               {}},
                              operations, buckets, time_point));
  }
  return plots;
}

}  // namespace shardmark
