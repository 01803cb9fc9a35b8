// A row per training point: memory by part, compute and traffic by the laws. What neighbouring points share
// is a heading.
#include "analysis/axis_columns.h"
#include "analysis/cells.h"
#include "cli/plan_tables.h"
#include "plan/axis_values.h"

namespace shardmark {
namespace {

// Those between the scaling and the data.
template <class Visit>
void for_each_setting(Visit visit) {
  for (const AxisRow& axis : kTrainingAxes)
    if (axis.heading != nullptr && axis.key != std::string_view("model") &&
        axis.key != std::string_view("data"))
      visit(axis);
}

std::vector<Column> family_columns() {
  std::vector<Column> settings;
  for_each_setting([&](const AxisRow& axis) { settings.push_back(axis_column(axis)); });
  return concat<Column>(
      {{{"model", "", false, true}, {"parameters", "million", true, true}, {"scaling", "", false, true}},
       settings,
       {{"data", "", false, true}, {"transport", "", false, true}},
       sampling_columns()});
}

std::vector<Cell> family_cells(const Point& point, const Expectation& e) {
  std::vector<Cell> settings;
  for_each_setting([&](const AxisRow& axis) { settings.push_back(setting_cell(axis, point)); });
  return concat<Cell>(
      {{cells::words(model_name(point)), cells::number(static_cast<double>(e.num_parameters) / 1e6),
        cells::words(point.training.scaling)},
       settings,
       {cells::words(data_name(point)), cells::words(point.transport)},
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

std::string choice_name(const std::string& key, const Point& point) {
  const auto choice = std::get<Choice>(value_of(axis_named(key), point));
  return to_text(without_defaults(choice, kind_of(key).options(choice.name)));
}
std::string model_name(const Point& point) { return choice_name("model", point); }
std::string data_name(const Point& point) { return choice_name("data", point); }
std::string strategy_name(const Point& point) { return choice_name("strategy", point); }

Cell setting_cell(const AxisRow& axis, const Point& point) {
  return std::holds_alternative<Choices>(axis.accepted) ? cells::words(choice_name(axis.key, point))
                                                        : axis_cell(axis, point);
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
