// Goodput over the numbers of ranks that were asked for.
#include <fmt/format.h>

#include "analysis/frame/groups.h"
#include "analysis/plots/plots.h"
#include "analysis/stats/goodput.h"
#include "base/units.h"

namespace shardmark {
namespace {

struct GoodputRate {
  std::string name;
  double per_node_hour;
};

// The rate that was asked for comes first. The published ones follow, so that a reader sees how much
// depends on the rate; one that was asked for is not drawn twice.
std::vector<GoodputRate> rates_of(const FailureQuery& query) {
  const auto* asked = published_failures(query.per_node_hour);
  std::vector<GoodputRate> rates = {
      {asked == nullptr ? "" : std::string(asked->name) + ", ", query.per_node_hour}};
  for (const PublishedFailures& one : kPublishedFailures)
    if (&one != asked) rates.push_back({std::string(one.name) + ", ", one.per_node_hour});
  for (GoodputRate& rate : rates) rate.name += format_number(rate.per_node_hour, 3) + " per node and hour";
  return rates;
}

PlotPoint point_of(GoodputRow row, double per_node_hour) {
  row.job.between_s = 3600 / (per_node_hour * static_cast<double>(row.nodes));
  const double percent = 100 * row.share();
  return plot_point(static_cast<double>(row.point.ranks), {percent},
                    fmt::format("{} on {} node{}: {:.2f} %, a failure every {}, a checkpoint every {}",
                                ranks_text(row.point.ranks), row.nodes, row.nodes == 1 ? "" : "s", percent,
                                format_seconds(row.job.between_s), format_seconds(row.interval_s())));
}

}  // namespace

// The time of a checkpoint is that of a family, whatever the strategy.
Plots goodput_plots(const std::vector<GoodputRow>& rows, const FailureQuery& query, const PlotNames& names) {
  Plots plots;
  const std::vector<GoodputRate> rates = rates_of(query);
  for (const auto& family : groups_of(rows, [](const GoodputRow& row) { return row.like->family; })) {
    const GoodputRow& first = *family.front();
    Plot& plot = plots.emplace_back(
        Plot{"goodput",
             "goodput",
             "Goodput: share of wall time that becomes kept progress",
             names.family(*first.like),
             fmt::format("By formula, with a checkpoint, which takes {}, after each of Daly's "
                         "intervals; {} to restart. A curve for each rate of failures.",
                         format_seconds(first.job.write_s), format_seconds(first.job.restart_s)),
             {"ranks", Scale::log2},
             {"goodput (%)", Scale::linear},
             {},
             {}});
    for (const GoodputRate& rate : rates) {
      Curve curve{rate.name, Form::measured, static_cast<int>(plot.curves.size()), {}};
      for (const GoodputRow* row : family) curve.points.push_back(point_of(*row, rate.per_node_hour));
      plot.curves.push_back(std::move(curve));
    }
  }
  return plots;
}

}  // namespace shardmark
