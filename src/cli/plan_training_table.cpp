// The table of training points: predicted memory by part, compute and traffic. Settings that neighbouring
// points share become a heading.
#include "analysis/frame/quantities.h"
#include "analysis/table/axis_columns.h"
#include "cli/plan_tables.h"
#include "strategies/activations.h"

namespace shardmark {
namespace {

struct Expected {
  const Point* point;
  Expectation e;
  MergedPoint merged;
  // The predicted result of a search for the largest batch; 0: not a search, or the memory is unknown.
  int64_t largest_batch = 0;
};

ColumnsOf<Expected> point_setting_columns() {
  const ColumnsOf<Expected> parameters = {
      {{"parameters", "million", true, true},
       [](const auto& row) { return cells::number(static_cast<double>(row.e.num_parameters) / 1e6); }},
      {{"active", "million", true, true},
       [](const auto& row) {
         return cells::unless_default(row.e.num_active_parameters == row.e.num_parameters,
                                      cells::number(static_cast<double>(row.e.num_active_parameters) / 1e6));
       },
       "parameters that a token goes through: of a mixture of experts those that it is sent to."}};
  const ColumnsOf<Point> scaling = {
      {{"scaling", "", false, true}, [](const Point& p) { return cells::words(p.training.scaling); }}};
  const auto others =
      join(scaling, without(axis_columns(), {"model", "data"}), axis_columns({"data"}), measuring_columns());
  return join(via(&Expected::point, axis_columns({"model"})), parameters, via(&Expected::point, others));
}

ColumnsOf<Expected> cost_columns() {
  constexpr std::string_view kMemory = "memory per rank", kStep = "per rank and step";
  const ColumnsOf<Expected> point = {
      {choice_column("strategy"), [](const auto& row) { return strategy_cell(row.point->training); }},
      {{"batch", "per rank"}, [](const auto& row) { return batch_cell(*row.point); }},
      {{"fits", "per rank", true, true},
       [](const auto& row) {
         return cells::unless_default(row.largest_batch == 0, cells::count(row.largest_batch));
       },
       "the largest batch by the memory of a rank, the program's buffers and the activations of the "
       "model's table; the report compares it with the one found."},
      {{"ranks", ""}, [](const auto& row) { return cells::count(row.point->ranks); }}};
  return join(point, through<Expected>([](const Expected& row) -> const MergedPoint& { return row.merged; },
                                       columns_of({{"predicted_parameter_bytes", kMemory, "parameters"},
                                                   {"predicted_gradient_bytes", kMemory, "gradients"},
                                                   {"predicted_optimizer_bytes", kMemory, "optimizer"},
                                                   {"predicted_transient_bytes", kMemory, "transient"},
                                                   {"predicted_activation_bytes", kMemory, "activations"},
                                                   {"predicted_peak_bytes", kMemory, "total"},
                                                   {"flops_per_step", kStep, "compute"},
                                                   {"predicted_traffic_bytes", kStep, "traffic"},
                                                   {"num_operations", kStep}})));
}

int64_t largest_batch_of(const Point& point, const Expectation& of_one, int64_t limit_bytes) {
  const double program = of_one.cost.state_bytes();
  return strategies::largest_batch(strategies::RankStep(point).input(),
                                   static_cast<double>(limit_bytes) - program);
}

}  // namespace

MergedPoint as_merged(const Point& point, const Expectation& expectation) {
  MergedPoint merged;
  merged.point = point;
  Measures& m = merged.measures;
  m.predicted_parameter_bytes = expectation.cost.parameter_bytes;
  m.predicted_gradient_bytes = expectation.cost.gradient_bytes;
  m.predicted_optimizer_bytes = expectation.cost.optimizer_bytes;
  m.predicted_transient_bytes = expectation.cost.transient_bytes;
  m.predicted_activation_bytes = expectation.activation_bytes;
  m.flops_per_step = expectation.flops_per_step;
  m.predicted_traffic_bytes = expectation.cost.traffic_bytes;
  m.num_operations = expectation.cost.num_operations;
  return merged;
}

Cell batch_cell(const Point& p) {
  return p.training.batch_size == kLargest ? cells::words("largest") : cells::count(p.training.batch_size);
}

Table training_table(const std::vector<const Point*>& points, const Expectations& expected,
                     int64_t limit_bytes) {
  std::vector<Expected> rows;
  for (const Point* point : points) {
    const Expectation& expectation = expected.at(point);
    rows.push_back({point, expectation, as_merged(*point, expectation)});
    if (limit_bytes > 0 && point->training.batch_size == kLargest)
      rows.back().largest_batch = largest_batch_of(*point, rows.back().e, limit_bytes);
  }
  return make_table("training", "Training points",
                    join(starting(Starts::section, point_setting_columns()), cost_columns()), rows);
}

}  // namespace shardmark
