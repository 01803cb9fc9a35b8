// One row for each metric.
#include "analysis/openmetrics.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>

#include "analysis/frame/quantities.h"
#include "base/text.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

struct Metric {
  const char* name;
  const char* unit;  // the end of the name
  std::string_view quantity;
  double scale = 1;  // of its value
};

constexpr std::array kMetrics = {
    Metric{"step_seconds", "seconds", "step"},
    Metric{"step_low_seconds", "seconds", "step_low"},
    Metric{"step_high_seconds", "seconds", "step_high"},
    Metric{"samples_per_second", "", "samples_per_s"},
    Metric{"tokens_per_second", "", "tokens_per_s"},
    Metric{"mfu_ratio", "ratio", "mfu"},
    Metric{"matmul_ratio", "ratio", "of_matmul"},
    Metric{"exposed_communication_seconds", "seconds", "exposed_time"},
    Metric{"peak_memory_bytes", "bytes", "peak_bytes"},
    Metric{"bus_bandwidth_bytes_per_second", "", "busbw", 1e9},
};

struct ProgressMetric {
  const char* name;
  const char* unit;
  const char* help;
  double (*value)(const SweepProgress& sweep);
};

constexpr std::array kProgress = {
    ProgressMetric{"sweep_running", "",
                   "1 while the sweep runs, 0 when it has ended; a sweep that was killed leaves 1 "
                   "and a change_time that stands still",
                   [](const SweepProgress& sweep) { return sweep.is_running ? 1. : 0.; }},
    ProgressMetric{"sweep_done_points", "", "points of the plan that are over, whatever their outcome",
                   [](const SweepProgress& sweep) { return static_cast<double>(sweep.num_done); }},
    ProgressMetric{"sweep_to_go_points", "", "points of the plan that are still to be measured",
                   [](const SweepProgress& sweep) { return static_cast<double>(sweep.num_to_go); }},
    ProgressMetric{"sweep_failed_points", "", "points of the study that failed, were wrong or timed out",
                   [](const SweepProgress& sweep) { return static_cast<double>(sweep.num_failed); }},
    ProgressMetric{"sweep_elapsed_seconds", "seconds",
                   "time from the begin of this launch of the sweep to the last change",
                   [](const SweepProgress& sweep) { return sweep.changed_s - sweep.began_s; }},
    ProgressMetric{"sweep_change_time_seconds", "seconds", "when this file was written, seconds since 1970",
                   [](const SweepProgress& sweep) { return sweep.changed_s; }},
};

// Label values are quoted; escapes are those of the specification.
std::string label(const std::string& name, const std::string& value) {
  std::string escaped;
  for (const char c : printable(value, "")) {
    if (c == '\\' || c == '"') escaped += '\\';
    escaped += c;
  }
  return fmt::format("{}=\"{}\"", name, escaped);
}

std::string labels_of(const MergedPoint& merged) {
  const Point& point = merged.point;
  const auto count = [](int64_t number) { return number > 0 ? std::to_string(number) : ""; };
  std::string labels = label("machine", merged.machine) + "," + label("transport", merged.transport) + "," +
                       label("nodes", count(merged.nodes)) + "," +
                       label("ranks_per_node", count(merged.ranks_per_node)) + "," +
                       label("ranks", std::to_string(point.ranks)) + "," + label("workload", point.workload);
  if (point.workload == "collective") {
    labels += "," + label("operation", operation_text(point.collective)) + "," +
              label("bytes", std::to_string(point.collective.bytes));
  } else {
    labels += "," + label("model", brief_text("model", point.training.model)) + "," +
              label("strategy", brief_text("strategy", merged.strategy)) + "," +
              label("precision", point.training.precision) + "," +
              label("batch_size", std::to_string(point.training.batch_size));
  }
  return labels + "," + label("point", to_text(point));
}

std::string head(const std::string& name, const std::string& unit, const std::string& help) {
  std::string text = fmt::format("# TYPE shardmark_{} gauge\n", name);
  if (!unit.empty()) text += fmt::format("# UNIT shardmark_{} {}\n", name, unit);
  return text + fmt::format("# HELP shardmark_{} {}\n", name, help);
}

}  // namespace

std::string point_metrics(const std::vector<StudyData>& studies) {
  const std::vector<MergedPoint> points = merge_repeats(studies);
  std::vector<std::string> labels;
  for (const MergedPoint& merged : points) labels.push_back(labels_of(merged));
  std::string text;
  // All series of a metric have to follow its head, so the loop runs over metrics outside and points
  // inside.
  for (const Metric& metric : kMetrics) {
    const Quantity& of = quantity(metric.quantity);
    std::string series;
    for (size_t i = 0; i < points.size(); ++i)
      if (const double value = metric.scale * of.of(points[i]); std::isfinite(value))
        series += fmt::format("shardmark_{}{{{}}} {}\n", metric.name, labels[i], value);
    if (!series.empty()) text += head(metric.name, metric.unit, of.definition) + series;
  }
  std::map<std::string, int64_t> outcomes;
  for (const StudyData& study : studies)
    for (const Record& record : study.records) ++outcomes[std::string(to_text(record.outcome))];
  if (!outcomes.empty()) text += head("points", "", "points of these studies, repeats counted, by outcome.");
  for (const auto& [outcome, count] : outcomes)
    text += fmt::format("shardmark_points{{{}}} {}\n", label("outcome", outcome), count);
  return text;
}

std::string progress_metrics(const SweepProgress& sweep) {
  const std::string study = label("study", sweep.study);
  std::string text;
  for (const ProgressMetric& metric : kProgress)
    text += head(metric.name, metric.unit, metric.help + std::string(".")) +
            fmt::format("shardmark_{}{{{}}} {}\n", metric.name, study, metric.value(sweep));
  if (sweep.point.empty()) return text;
  constexpr auto kName = "sweep_point_start_time_seconds";
  return text +
         head(kName, "seconds", "the point that is being measured, and since when, seconds since 1970.") +
         fmt::format("shardmark_{}{{{},{}}} {}\n", kName, study, label("point", sweep.point),
                     sweep.point_began_s);
}

}  // namespace shardmark
