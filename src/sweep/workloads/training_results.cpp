// Computes throughput, phases and predictions of a training point, to be stored together with what was
// measured.
#include "sweep/workloads/training_results.h"

#include <algorithm>
#include <numeric>

#include "base/stats.h"
#include "schema/step_statistics.h"
#include "schema/throughput.h"
#include "specs/mesh.h"
#include "specs/specs.h"
#include "strategies/activations.h"
#include "strategies/saved_state.h"
#include "strategies/stages.h"
#include "strategies/strategy.h"

namespace shardmark {
namespace {

// Sum over windows of the wall time of the slowest rank.
double total_window_s(const Series& window) {
  double total = 0;
  for (int64_t column = 0; column < window.columns; ++column) {
    double slowest = 0;
    for (int64_t row = 0; row < window.rows; ++row) slowest = std::max(slowest, window.at(row, column));
    total += slowest;
  }
  return total;
}

// Median over steps of a phase. In each step the slowest rank counts, so that the phases add up to the step.
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

// The predicted cost of a rank. If every rank has the whole model it is given by the formulas of the
// strategy's paper. For layouts that divide a copy of the model no paper has formulas for all dimensions
// together, so the program of the rank's stage is used.
strategies::StagesCost predicted_cost(const Point& point, int64_t rank) {
  const TrainingPoint& t = point.training;
  const auto batch = static_cast<double>(t.batch_size);
  if (point.is_model_parallel())
    return strategies::costs_of(strategies::Stages(point),
                                batch)[static_cast<size_t>(specs::mesh_of(point).stage_of(rank))];
  const strategies::RankStep rank_step(point);
  return {strategies::strategy(t.strategy.name).paper(rank_step.input()),
          strategies::activation_bytes(rank_step.input(), batch)};
}

void derive_predictions(Record& record) {
  auto& m = record.measures;
  const auto& [cost, activation_bytes] = predicted_cost(record.point, fullest_rank(record));
  m.predicted_parameter_bytes = cost.parameter_bytes;
  m.predicted_gradient_bytes = cost.gradient_bytes;
  m.predicted_optimizer_bytes = cost.optimizer_bytes;
  m.predicted_transient_bytes = cost.transient_bytes;
  m.predicted_offloaded_bytes = cost.offloaded_bytes;
  m.predicted_activation_bytes = activation_bytes;
  m.predicted_traffic_bytes = cost.traffic_bytes;
  const std::string& save = record.point.training.save.name;
  if (save != "none")
    m.predicted_checkpoint_bytes =
        static_cast<double>(save == "sharded" ? strategies::sharded_state_bytes(record.point)
                                              : strategies::whole_state_bytes(record.point));
}

double value_or_none(const std::map<std::string, double>& values, const std::string& key) {
  const auto found = values.find(key);
  return found == values.end() ? Measures::kNone : found->second;
}

}  // namespace

double flops_per_step(const Point& point, const specs::ModelTable& table) {
  const TrainingPoint& t = point.training;
  return table.step_flops() * static_cast<double>(t.batch_size * t.accumulation) /
         static_cast<double>(point.ranks_per_copy());
}

int64_t fullest_rank(const Record& record) {
  const Series* const peaks = record.series("peak");
  if (peaks == nullptr) return 0;
  return std::max_element(peaks->values.begin(), peaks->values.end()) - peaks->values.begin();
}

void derive_speed(Record& record, const specs::ModelTable& table, const Resources& resources, int64_t steps,
                  double seconds) {
  auto& m = record.measures;
  const std::string type = record.point.training.product_type();
  const Throughput speed = throughput_of(record.point, table.sample.tokens(), steps, seconds);
  m.samples_per_s = speed.samples_per_s;
  m.tokens_per_s = speed.tokens_per_s;
  m.flops_per_step = flops_per_step(record.point, table);
  m.peak_flops = value_or_none(resources.peak_flops, type);
  m.datasheet_flops = value_or_none(resources.datasheet_flops, type);
  m.mfu = mfu_of(m);
}

void derive_training(Record& record, const specs::ModelTable& table, const Resources& resources) {
  auto& m = record.measures;
  derive_predictions(record);
  const Series* step = record.series("step");
  const Series* window = record.series("window");
  if (step == nullptr || window == nullptr || step->columns == 0) return;

  derive_speed(record, table, resources, num_timed_steps(record), total_window_s(*window));
  m.data_s = phase_s(*step, *record.series("data"));
  m.forward_s = phase_s(*step, *record.series("forward"));
  m.backward_s = phase_s(*step, *record.series("backward"));
  m.exposed_s = phase_s(*step, *record.series("exposed"));
  m.optimizer_s = phase_s(*step, *record.series("optimizer"));
  for (const auto& [series, measure] : {std::pair("exposed_tensor", &Measures::exposed_tensor_s),
                                        {"exposed_context", &Measures::exposed_context_s},
                                        {"exposed_expert", &Measures::exposed_expert_s},
                                        {"exposed_pipeline", &Measures::exposed_pipeline_s}})
    if (const Series* exposed = record.series(series)) m.*measure = phase_s(*step, *exposed);

  if (const Series* ablation = record.series("compute_only")) {
    m.compute_only_s = median(worst_of_ranks(*ablation));
    m.communication_only_s = median(worst_of_ranks(*record.series("communication_only")));
    m.overlap = 1 - (m.step_s - m.compute_only_s) / m.communication_only_s;
  }
}

}  // namespace shardmark
