// A step over other links, by formula: Amdahl's curves, and the all-reduce by model size.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/plots/plots.h"
#include "analysis/scaling/interconnects.h"
#include "base/units.h"

namespace shardmark {
namespace {

constexpr double kMostRanks = 512;
constexpr int kMostDecade = 6;  // of gradients: 1 MB to 10^6 MB

// "gpt2, global batch 8": which step on one rank.
struct NamedWorkload {
  const OneRankStep& workload;
  std::string name;
};

Plot speed_up_plot(const NamedWorkload& named, const std::vector<specs::Link>& links) {
  const OneRankStep& workload = named.workload;
  Plot plot{"interconnects",
            "interconnects",
            "Amdahl's curve of a step over each link",
            fmt::format("{}: {} on one rank, gradients of {} MB", named.name, format_seconds(workload.step_s),
                        format_number(workload.gradient_bytes / 1e6, 3)),
            "By formula: T(1) / (T(1)/n + a ring all-reduce of the gradients), nothing of it hidden.",
            {"ranks", Scale::log2},
            {"speed-up", Scale::log2},
            {},
            {{"ideal", Form::law, kNeutral, {{1, 1}, {kMostRanks, kMostRanks}}}}};
  for (const specs::Link& link : links) {
    Curve curve{link.name, Form::law, static_cast<int>(plot.curves.size()) - 1, {}};
    for (double ranks = 1; ranks <= kMostRanks; ranks *= 2) {
      const double value = interconnect_speed_up(workload, link, ranks);
      curve.points.push_back({ranks, value});
      curve.points.back().text =
          fmt::format("{}: {}", ranks_text(std::lround(ranks)), format_number(value, 3));
    }
    plot.curves.push_back(std::move(curve));
  }
  return plot;
}

Plot all_reduce_plot(const std::vector<OneRankStep>& workloads, const std::vector<specs::Link>& links,
                     int64_t ranks) {
  const auto n = static_cast<double>(ranks);
  Plot plot{
      "all_reduce_overhead",
      "interconnects",
      "All-reduce of the gradients, by model size",
      fmt::format("on {} ranks", ranks),
      fmt::format("By formula: 2 (n-1) (alpha + M / n / rate) with n = {} ranks. Vertical lines: the models.",
                  ranks),
      {"gradients M (MB)", Scale::log10},
      {"time (ms)", Scale::log10},
      {},
      {}};
  for (const specs::Link& link : links) {
    Curve curve{link.name, Form::law, static_cast<int>(plot.curves.size()), {}};
    for (int half = 0; half <= 2 * kMostDecade; ++half) {
      const double megabytes = std::pow(10, half / 2.0);
      const double time_s = specs::ring_all_reduce_s(megabytes * 1e6, n, link);
      curve.points.push_back({megabytes, time_s * 1e3});
      curve.points.back().text =
          fmt::format("{} MB: {}", format_number(megabytes, 3), format_seconds(time_s));
    }
    plot.curves.push_back(std::move(curve));
  }
  for (const OneRankStep& workload : workloads)
    plot.references.push_back(
        {workload.gradient_bytes / 1e6,
         workload.merged == nullptr ? workload.label : workload.merged->point.training.model.name, false});
  return plot;
}

}  // namespace

Plots interconnect_plots(const std::vector<MergedPoint>& points, const PlotNames& names,
                         const std::vector<specs::Link>& links) {
  constexpr int64_t kRanks = 8;  // of the all-reduce
  std::vector<OneRankStep> all = workloads(points);
  std::erase_if(all, [](const OneRankStep& workload) { return !std::isfinite(workload.step_s); });
  if (all.empty()) return {};
  Plots plots;
  for (const OneRankStep& workload : all) {
    const MergedPoint& merged = *workload.merged;
    plots.push_back(speed_up_plot(
        {workload, fmt::format("{}, global batch {}", names.family(merged), merged.point.global_batch())},
        links));
  }
  plots.push_back(all_reduce_plot(all, links, kRanks));
  return plots;
}

Plots interconnect_plots(const std::vector<OneRankStep>& workloads, const std::vector<specs::Link>& links,
                         int64_t ranks) {
  Plots plots;
  for (const OneRankStep& workload : workloads)
    if (std::isfinite(workload.step_s)) plots.push_back(speed_up_plot({workload, workload.label}, links));
  plots.push_back(all_reduce_plot(workloads, links, ranks));
  return plots;
}

}  // namespace shardmark
