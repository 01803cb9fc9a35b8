// A step over other links, by formula: Amdahl's curves, and the all-reduce by model size.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/plots/plots.h"
#include "analysis/stats/interconnects.h"
#include "base/units.h"

namespace shardmark {
namespace {

constexpr int64_t kMostRanks = 512;
constexpr int kMostDecade = 6;  // of gradients: 1 MB to 10^6 MB

Plot speed_up_plot(const OneRankStep& workload, const std::vector<specs::Link>& links) {
  // No further than ranks get a sample each of the global batch, up to kMostRanks.
  int64_t most_ranks = 1;
  while (most_ranks < kMostRanks && workload.divides_over(2 * most_ranks)) most_ranks *= 2;
  Plot plot{"interconnects",
            "interconnects",
            "Amdahl's curve of a step over each link",
            fmt::format("{}: {} on one rank, gradients of {} MB", workload.label,
                        format_seconds(workload.step_s), format_number(workload.gradient_bytes / 1e6, 3)),
            "By formula: T(1) / (T(1)/n + an all-reduce of the gradients), nothing of it hidden.",
            {"ranks", Scale::log2},
            {"speed-up", Scale::log2},
            {},
            {{"ideal",
              Form::law,
              kNeutral,
              {{1, 1}, {static_cast<double>(most_ranks), static_cast<double>(most_ranks)}}}}};
  for (const specs::Link& link : links) {
    Curve curve{link.name, Form::law, static_cast<int>(plot.curves.size()) - 1, {}};
    for (int64_t ranks = 1; ranks <= most_ranks; ranks *= 2) {
      const double value = interconnect_speed_up(workload, link, ranks);
      curve.points.push_back({static_cast<double>(ranks), value});
      curve.points.back().text = fmt::format("{}: {}", ranks_text(ranks), format_number(value, 3));
    }
    plot.curves.push_back(std::move(curve));
  }
  return plot;
}

Plot all_reduce_plot(const std::vector<OneRankStep>& workloads, const std::vector<specs::Link>& links,
                     int64_t ranks) {
  Plot plot{"all_reduce_overhead",
            "interconnects",
            "All-reduce of the gradients, by model size",
            fmt::format("on {} ranks", ranks),
            "By formula, as a ring or a tree, whichever is faster. Vertical lines: the models.",
            {"gradients M (MB)", Scale::log10},
            {"time (ms)", Scale::log10},
            {},
            {}};
  for (const specs::Link& link : links) {
    Curve curve{link.name, Form::law, static_cast<int>(plot.curves.size()), {}};
    // Two points for each decade of the gradients' size.
    for (int half = 0; half <= 2 * kMostDecade; ++half) {
      const double megabytes = std::pow(10, half / 2.0);
      const double time_s = all_reduce_s(megabytes * 1e6, link, ranks);
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

Plots interconnect_plots(const std::vector<OneRankStep>& workloads, const std::vector<specs::Link>& links,
                         int64_t ranks) {
  Plots plots;
  for (const OneRankStep& workload : workloads)
    if (std::isfinite(workload.step_s) && workload.divides_over(2))
      plots.push_back(speed_up_plot(workload, links));
  if (!workloads.empty()) plots.push_back(all_reduce_plot(workloads, links, ranks));
  return plots;
}

}  // namespace shardmark
