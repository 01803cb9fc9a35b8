// What other links would make of a step, by formula: Amdahl's curves, and the all-reduce by model size.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/interconnects.h"
#include "analysis/plots/plots.h"
#include "base/units.h"

namespace shardmark {
namespace {

constexpr double kMostRanks = 512;
constexpr int kMostDecade = 6;  // of gradients: 1 MB to 10^6 MB
constexpr double kRanks = 8;    // of the all-reduce

Plot speed_up_plot(const Workload& workload, const PlotNames& names, const std::vector<laws::Link>& links) {
  Plot plot{"interconnects",
            "interconnects",
            "Amdahl's curve of a step over each link",
            fmt::format("{}, global batch {}: {} on one rank, gradients of {} MB",
                        names.family(*workload.merged), workload.merged->point.global_batch(),
                        format_seconds(workload.step_s), format_number(workload.gradient_bytes / 1e6, 3)),
            "By formula: T(1) / (T(1)/n + a ring all-reduce of the gradients), nothing of it hidden.",
            {"ranks", Scale::log2},
            {"speed-up", Scale::log2},
            {},
            {{"ideal", Form::law, kNeutral, {{1, 1}, {kMostRanks, kMostRanks}}}}};
  for (const laws::Link& link : links) {
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

Plot all_reduce_plot(const std::vector<Workload>& workloads, const std::vector<laws::Link>& links) {
  Plot plot{"all_reduce_overhead",
            "interconnects",
            "All-reduce of the gradients, by model size",
            fmt::format("on {:.0f} ranks", kRanks),
            fmt::format(
                "By formula: 2 (n-1) (alpha + M / n / rate) with n = {:.0f} ranks. Upright lines: models of "
                "this report.",
                kRanks),
            {"gradients M (MB)", Scale::log10},
            {"time (ms)", Scale::log10},
            {},
            {}};
  for (const laws::Link& link : links) {
    Curve curve{link.name, Form::law, static_cast<int>(plot.curves.size()), {}};
    for (int half = 0; half <= 2 * kMostDecade; ++half) {
      const double megabytes = std::pow(10, half / 2.0);
      const double time_s = laws::ring_all_reduce_s(megabytes * 1e6, kRanks, link);
      curve.points.push_back({megabytes, time_s * 1e3});
      curve.points.back().text =
          fmt::format("{} MB: {}", format_number(megabytes, 3), format_seconds(time_s));
    }
    plot.curves.push_back(std::move(curve));
  }
  for (const Workload& workload : workloads)
    plot.references.push_back(
        {workload.gradient_bytes / 1e6, workload.merged->point.training.model.name, false});
  return plot;
}

}  // namespace

Plots interconnect_plots(const std::vector<MergedPoint>& points, const PlotNames& names,
                         const std::vector<laws::Link>& links) {
  std::vector<Workload> all = workloads(points);
  std::erase_if(all, [](const Workload& workload) { return !std::isfinite(workload.step_s); });
  if (all.empty()) return {};
  Plots plots;
  for (const Workload& workload : all) plots.push_back(speed_up_plot(workload, names, links));
  plots.push_back(all_reduce_plot(all, links));
  return plots;
}

}  // namespace shardmark
