// Shared by the tests of analysis/: records of points with chosen step times, as a run would have stored
// them.
#pragma once

#include <string>

#include "analysis/tables/tables.h"
#include "schema/study.h"
#include "strategies/strategy.h"

namespace shardmark {

inline Choice resolved_strategy(const std::string& text) {
  const Choice choice = choice_from_text(text);
  return resolve(choice, strategies::strategy(choice.name).options, "strategy");
}

inline Choice small_gpt2() {
  const Choice choice = choice_from_text("gpt2(layers=4, width=256, heads=4, sequence=128, vocabulary=8192)");
  return resolve(choice, specs::model_spec("gpt2").options, "model");
}

// Returns a record of gpt2 with all measures set. Step time and exposed communication are in seconds.
inline Record training_record(const std::string& strategy, int64_t ranks, int64_t batch_size, double step_s,
                              double exposed_s = 0) {
  Record record;
  Point& p = record.point;
  p.workload = "training";
  p.ranks = ranks;
  TrainingPoint& t = p.training;
  t.model = small_gpt2();
  t.data = {"synthetic", {{"size", 4096}}};
  t.strategy = resolved_strategy(strategy);
  t.optimizer = {"adamw", {{"lr", 3e-4}}};
  t.batch_size = batch_size;
  Measures& m = record.measures;
  m.step_s = step_s;
  m.step_low_s = step_s * 0.99;
  m.step_high_s = step_s * 1.01;
  m.samples_per_s = static_cast<double>(ranks * batch_size) / step_s;
  m.tokens_per_s = 128 * m.samples_per_s;
  m.exposed_s = exposed_s;
  m.data_s = 1e-4;
  m.optimizer_s = 0.1 * step_s;
  m.forward_s = 0.3 * step_s;
  m.backward_s = step_s - m.data_s - m.optimizer_s - m.forward_s - exposed_s;
  // Two thirds of the communication are hidden, apart from the overhead of timing the ablations.
  if (exposed_s > 0) {
    m.compute_only_s = step_s - 1.1 * exposed_s;
    m.communication_only_s = 3 * exposed_s;
    m.overlap = 1 - (m.step_s - m.compute_only_s) / m.communication_only_s;
  }
  m.flops_per_step = 2e10 * static_cast<double>(batch_size);
  m.peak_flops = 1e12;
  m.verified = "equal to one device";

  const specs::ModelTable table = specs::model_spec("gpt2").table(p.training.model.options);
  const strategies::Cost law = strategies::cost_of(
      p.training.strategy.name, {table, ranks, 1, {4, 4, 4}, 2, p.training.strategy.options});
  const double activations = 50e6;
  m.parameter_bytes = m.predicted_parameter_bytes = law.parameter_bytes;
  m.gradient_bytes = m.predicted_gradient_bytes = law.gradient_bytes;
  m.optimizer_bytes = m.predicted_optimizer_bytes = law.optimizer_bytes;
  m.transient_bytes = m.predicted_transient_bytes = law.transient_bytes;
  m.traffic_bytes = m.predicted_traffic_bytes = law.traffic_bytes;
  m.num_operations = law.num_operations;
  m.peak_bytes =
      law.parameter_bytes + law.gradient_bytes + law.optimizer_bytes + law.transient_bytes + activations;
  m.predicted_activation_bytes = activations;
  record.id = point_id(p);
  return record;
}

inline Record collective_record(const std::string& operation, int64_t ranks, int64_t bytes, bool in_place,
                                double step_s) {
  Record record;
  record.point.workload = "collective";
  record.point.ranks = ranks;
  record.point.collective = {operation, "float32", "sum", bytes, in_place};
  Measures& m = record.measures;
  m.step_s = step_s;
  m.algbw_gb_s = static_cast<double>(bytes) / step_s / 1e9;
  m.busbw_gb_s = m.algbw_gb_s * 2 * static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  m.num_wrong = 0;
  record.id = point_id(record.point);
  return record;
}

inline StudyData study_of(std::vector<Record> records, const std::string& path = "results/small.h5") {
  StudyData study;
  study.path = path;
  Environment& e = study.environment;
  e.revision = "abc123";
  e.suite_path = "suites/small.yaml";
  e.started = "2026-01-01T00:00:00Z";
  e.transport = "mpi";
  e.world_ranks = 4;
  e.nodes = {"node1"};
  e.devices = {"Some CPU", "Some CPU", "Some CPU", "Some CPU"};
  study.records = std::move(records);
  return study;
}

// Returns the cell of a row in the column with this full name.
inline const Cell& cell(const Table& table, size_t row, const std::string& column) {
  for (size_t c = 0; c < table.columns.size(); ++c)
    if (table.columns[c].full_name() == column) return table.rows.at(row).at(c);
  throw ContractError("no column " + column);
}

}  // namespace shardmark
