// Speed and memory over the length of the sequence.
#include <fmt/format.h>

#include <utility>

#include "analysis/frame/groups.h"
#include "analysis/frame/quantities.h"
#include "analysis/frame/sequences.h"
#include "analysis/plots/plots.h"
#include "base/units.h"
#include "schema/axes.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

PlotPoint speed_point(const SequencePoint& point) {
  const Throughput speed = throughput_of(*point.merged);
  const auto sequence = static_cast<double>(point.sequence);
  return plot_point(sequence, rate_estimate(speed.value(), step_estimate(point.merged->measures)),
                    fmt::format("{} tokens: {}, {:.0f} % of the FLOPs are attention's",
                                format_count(sequence), speed.text(), 100 * point.attention),
                    is_unreliable(*point.merged));
}

PlotPoint memory_point(const SequencePoint& point) {
  const Quantity& memory = quantity("peak_bytes");
  const double bytes = memory.of(*point.merged);
  const auto sequence = static_cast<double>(point.sequence);
  return plot_point(sequence, {in_unit(memory, bytes)},
                    fmt::format("{} tokens: {}", format_count(sequence), format_bytes(bytes)));
}

Plot empty_plot(const SequenceSeries& series, const char* title, const char* note, Axis value) {
  const std::string about = fmt::format("{}, {} per rank, {}", brief_text("model", series.model), series.same,
                                        ranks_text(*series.points.front().merged));
  return {"sequences",      "layouts", title, about, note, {"sequence (tokens)", Scale::log2},
          std::move(value), {},        {}};
}

void add_curve(Plot& plot, const SequenceSeries& series, const PlotNames& names,
               PlotPoint (*make_point)(const SequencePoint&)) {
  const MergedPoint& first = *series.points.front().merged;
  Curve curve{names.strategy(first), Form::measured, static_cast<int>(plot.curves.size()), {}};
  if (const int64_t every = first.point.training.recompute; every != 0)
    curve.name += ", checkpointing " + recompute_in_words(every);
  for (const SequencePoint& point : series.points) curve.points.push_back(make_point(point));
  plot.curves.push_back(std::move(curve));
}

}  // namespace

Plots sequence_plots(const std::vector<MergedPoint>& points, const PlotNames& names) {
  Plots plots;
  const std::vector<SequenceSeries> all = sequence_series(points);
  for (const auto& group : groups_of(all, &SequenceSeries::setting)) {
    Plot speed = empty_plot(*group.front(), "Speed by the length of the sequence",
                            "Bars: from the 95 % interval of the step. Hollow: unreliable.", {"tokens/s"});
    Plot memory =
        empty_plot(*group.front(), "Memory by the length of the sequence",
                   "Peak memory of the rank that needs most.", {column_of({"peak_bytes"}).heading()});
    for (const SequenceSeries* series : group) {
      add_curve(speed, *series, names, speed_point);
      add_curve(memory, *series, names, memory_point);
    }
    plots.push_back(std::move(speed));
    plots.push_back(std::move(memory));
  }
  return plots;
}

}  // namespace shardmark
