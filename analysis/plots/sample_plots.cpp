// Every step that was timed: what medians and intervals leave out, such as two speeds, drift and stragglers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/frame/quantities.h"
#include "analysis/frame/rows.h"
#include "analysis/frame/slowest.h"
#include "analysis/plots/plots.h"
#include "base/units.h"

namespace shardmark {
namespace {

// The slowest rank's time of every step, over all repeats.
std::vector<double> steps_of(const MergedPoint& merged) {
  std::vector<double> steps;
  for (const Record* record : merged.records)
    for (const double slowest : slowest_of(*record, "step")) steps.push_back(slowest);
  return steps;
}

bool has_samples(const MergedPoint& merged) {
  return std::any_of(merged.records.begin(), merged.records.end(),
                     [](const Record* record) { return record->series("step") != nullptr; });
}

PlotPoint median_point(size_t row, const std::string& name, const Measures& m, size_t num_steps) {
  const std::string interval = m.has_interval() ? fmt::format(" ({} to {})", format_seconds(m.step_low_s),
                                                              format_seconds(m.step_high_s))
                                                : "";
  return plot_point(static_cast<double>(row), scaled(step_estimate(m), 1e3),
                    fmt::format("{}: median {}{} of {} steps, p10 {}, p90 {}, p99 {}", name,
                                format_seconds(m.step_s), interval, num_steps, format_seconds(m.step_p10_s),
                                format_seconds(m.step_p90_s), format_seconds(m.step_p99_s)));
}

// A straggler far out would press all others together on a linear axis.
Scale scale_for(const Curve& samples) {
  double low = INFINITY, high = 0;
  for (const PlotPoint& point : samples.points) {
    low = std::min(low, point.value);
    high = std::max(high, point.value);
  }
  return high > 2.5 * low ? Scale::log10 : Scale::linear;
}

}  // namespace

Plots sample_plots(const std::vector<MergedPoint>& points, const PlotNames& names) {
  Plots plots;
  for (const RowGroup& group : row_groups(points, names, has_samples)) {
    Curve samples{"a step", Form::samples, 0, {}}, medians{"median", Form::measured, 2, {}};
    for (size_t row = 0; row < group.points.size(); ++row) {
      const std::vector<double> steps = steps_of(*group.points[row]);
      for (double step_s : steps)
        samples.points.push_back({static_cast<double>(row), in_unit(quantity("step"), step_s)});
      medians.points.push_back(median_point(row, group.rows[row], group.points[row]->measures, steps.size()));
    }
    plots.push_back({"samples",
                     "phases",
                     "Timed steps",
                     group.about,
                     "One tick per step: the slowest rank's time; for a sustained run, a random sample of "
                     "the steps. Bar: 95 % interval of the median, which takes 6 steps.",
                     {""},
                     {column_of({"step", "", "step time"}).heading(), scale_for(samples), false},
                     group.rows,
                     {std::move(samples), std::move(medians)}});
  }
  return plots;
}

}  // namespace shardmark
