// Throughput, phases, and predictions beside what was measured.
#include "sweep/workloads/training_results.h"

#include <algorithm>
#include <numeric>

#include "base/stats.h"
#include "specs/specs.h"
#include "strategies/activations.h"
#include "strategies/strategy.h"
#include "sweep/workloads/statistics.h"

namespace shardmark {
namespace {

// Wall time of all windows, each as long as its slowest rank took.
double total_window_s(const Series& window) {
  double total = 0;
  for (int64_t column = 0; column < window.columns; ++column) {
    double slowest = 0;
    for (int64_t row = 0; row < window.rows; ++row) slowest = std::max(slowest, window.at(row, column));
    total += slowest;
  }
  return total;
}

// Median over steps of a phase, on the rank that was slowest in each step: so that phases add up to the step.
double phase_s(const Series& step, const Series& phase) {
  std::vector<double> values;
  for (int64_t column = 0; column < step.columns; ++column) {
    int64_t slowest = 0;
    for (int64_t row = 1; row < step.rows; ++row)
      if (step.at(row, column) > step.at(slowest, column)) slowest = row;
    values.push_back(phase.at(slowest, column));
  }
  return median(values);
}

void derive_predictions(Record& record, const specs::ModelTable& table) {
  auto& m = record.measures;
  const TrainingPoint& t = record.point.training;
  const strategies::StepInput input = strategies::step_input(record.point, table);
  const strategies::Cost cost = strategies::strategy(t.strategy.name).paper(input);
  m.predicted_parameter_bytes = cost.parameter_bytes;
  m.predicted_gradient_bytes = cost.gradient_bytes;
  m.predicted_optimizer_bytes = cost.optimizer_bytes;
  m.predicted_transient_bytes = cost.transient_bytes;
  m.predicted_offloaded_bytes = cost.offloaded_bytes;
  m.predicted_activation_bytes = strategies::activation_bytes(input, static_cast<double>(t.batch_size));
  m.predicted_traffic_bytes = cost.traffic_bytes;
}

double value_or_none(const std::map<std::string, double>& values, const std::string& key) {
  const auto found = values.find(key);
  return found == values.end() ? Measures::kNone : found->second;
}

}  // namespace

void derive_training(Record& record, const specs::ModelTable& table, const Resources& resources) {
  auto& m = record.measures;
  const auto& t = record.point.training;
  derive_predictions(record, table);
  const Series* step = record.series("step");
  const Series* window = record.series("window");
  if (step == nullptr || window == nullptr || step->columns == 0) return;

  const auto samples = static_cast<double>(record.point.global_batch() * num_timed_steps(record));
  m.samples_per_s = samples / total_window_s(*window);
  if (table.sample.kind == specs::SampleShape::Kind::tokens)
    m.tokens_per_s = m.samples_per_s * static_cast<double>(table.sample.input.front());
  m.data_s = phase_s(*step, *record.series("data"));
  m.forward_s = phase_s(*step, *record.series("forward"));
  m.backward_s = phase_s(*step, *record.series("backward"));
  m.exposed_s = phase_s(*step, *record.series("exposed"));
  m.optimizer_s = phase_s(*step, *record.series("optimizer"));

  if (const Series* ablation = record.series("compute_only")) {
    m.compute_only_s = median(worst_of_ranks(*ablation));
    m.communication_only_s = median(worst_of_ranks(*record.series("communication_only")));
    m.overlap = 1 - (m.step_s - m.compute_only_s) / m.communication_only_s;
  }

  m.flops_per_step = table.step_flops() * static_cast<double>(t.batch_size * t.accumulation);
  m.peak_flops = value_or_none(resources.peak_flops, t.precision);
  m.datasheet_flops = value_or_none(resources.datasheet_flops, t.precision);
  m.mfu = m.flops_per_step / m.step_s / m.peak_flops;
}

}  // namespace shardmark
