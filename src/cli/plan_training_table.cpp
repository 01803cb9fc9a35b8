// A row per training point: memory by part, compute and traffic by the laws. What neighbouring points share
// is a heading.
#include "analysis/cells.h"
#include "cli/plan_tables.h"
#include "laws/vocabulary.h"

namespace shardmark {
namespace {

std::string optimizer_name(const Point& p) {
  return to_text(
      without_defaults(p.training.optimizer, laws::optimizer_laws().at(p.training.optimizer.name).options));
}

std::vector<Column> family_columns() {
  return concat<Column>({{{"model", "", false, true},
                          {"parameters", "million", true, true},
                          {"scaling", "", false, true},
                          {"optimizer", "", false, true},
                          {"precision", "", false, true},
                          {"reduced as", "", false, true},
                          {"clip norm", "", true, true},
                          {"checkpointing", "", true, true},
                          {"accumulation", "", true, true},
                          {"data", "", false, true},
                          {"transport", "", false, true}},
                         sampling_columns()});
}

std::vector<Cell> family_cells(const Point& point, const Expectation& e) {
  const TrainingPoint& t = point.training;
  return concat<Cell>(
      {{cells::words(model_name(point)), cells::number(static_cast<double>(e.num_parameters) / 1e6),
        cells::words(t.scaling), cells::words(optimizer_name(point)), cells::words(t.precision),
        cells::unless_default(t.reduce_dtype == "same", cells::words(t.reduce_dtype)),
        cells::unless_default(t.clip_norm == 0, cells::number(t.clip_norm)),
        cells::unless_default(t.checkpointing == 0, cells::count(t.checkpointing)),
        cells::count(t.accumulation), cells::words(data_name(point)), cells::words(point.transport)},
       sampling_cells(point.sampling)});
}

std::vector<Column> cost_columns() {
  const std::string memory = "memory per rank", step = "per rank and step";
  return {{"strategy", "", false},
          {"batch", "per rank"},
          {"ranks", ""},
          {"parameters", "MiB", true, false, memory},
          {"gradients", "MiB", true, false, memory},
          {"optimizer", "MiB", true, false, memory},
          {"transient", "MiB", true, false, memory},
          {"activations", "MiB", true, false, memory},
          {"total", "MiB", true, false, memory},
          {"compute", "GFLOP", true, false, step},
          {"traffic", "MiB", true, false, step},
          {"operations", "", true, false, step}};
}

std::vector<Cell> cost_cells(const Point& point, const Expectation& e) {
  return {cells::words(strategy_name(point)),
          point.training.batch_size == kLargest ? cells::words("largest")
                                                : cells::count(point.training.batch_size),
          cells::count(point.ranks),
          cells::mebibytes(e.cost.parameter_bytes),
          cells::mebibytes(e.cost.gradient_bytes),
          cells::mebibytes(e.cost.optimizer_bytes),
          cells::mebibytes(e.cost.transient_bytes),
          cells::mebibytes(e.activation_bytes),
          cells::mebibytes(total_bytes(e)),
          cells::number(e.flops_per_step / 1e9),
          cells::mebibytes(e.cost.traffic_bytes),
          cells::count(e.cost.num_operations)};
}

}  // namespace

double total_bytes(const Expectation& e) {
  return e.cost.parameter_bytes + e.cost.gradient_bytes + e.cost.optimizer_bytes + e.cost.transient_bytes +
         e.activation_bytes;
}

std::vector<Column> sampling_columns() {
  return {{"steps at least", "", true, true},
          {"steps at most", "", true, true},
          {"time limit", "s", true, true},
          {"duration", "s", true, true}};
}

std::vector<Cell> sampling_cells(const Sampling& s) {
  const Cell none{"", nullptr};
  if (s.duration_s > 0) return {none, none, none, cells::number(s.duration_s, 4)};
  return {cells::count(s.min_steps), cells::count(s.max_steps), cells::number(s.time_limit_s, 3), none};
}

std::string model_name(const Point& p) {
  return to_text(without_defaults(p.training.model, laws::model_law(p.training.model.name).options));
}

std::string data_name(const Point& p) {
  return to_text(without_defaults(p.training.data, laws::data_laws().at(p.training.data.name).options));
}

std::string strategy_name(const Point& p) {
  return to_text(
      without_defaults(p.training.strategy, strategies::strategy(p.training.strategy.name).options));
}

Table training_table(const std::vector<const Point*>& points) {
  Table table{"training", "Training points", {}, concat<Column>({family_columns(), cost_columns()}), {}};
  for (const Point* point : points) {
    const Expectation e = expect(*point);
    table.rows.push_back(concat<Cell>({family_cells(*point, e), cost_cells(*point, e)}));
  }
  table.num_section_columns = family_columns().size();
  table.notes = {
      "Memory is that of the rank that has most, by the laws that tests hold the strategies to; activations "
      "are an "
      "estimate of what forward keeps for backward.",
      "Traffic is what a ring sends: payload x ring factor, mean over ranks.",
      "Options at their defaults (shardmark list) are left out of the names."};
  return table;
}

}  // namespace shardmark
