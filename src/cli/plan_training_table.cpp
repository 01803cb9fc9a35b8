// The table of training points: predicted memory by part, compute and traffic. Settings that neighbouring
// points share become a heading.
#include "analysis/table/axis_columns.h"
#include "cli/plan_tables.h"
#include "strategies/activations.h"

namespace shardmark {
namespace {

struct Expected {
  const Point* point;
  Expectation e;
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
  const char *const memory = "memory per rank", *const step = "per rank and step";
  const auto mebibytes_of = [](double strategies::Cost::*bytes) {
    return [bytes](const Expected& row) { return cells::mebibytes(row.e.cost.*bytes); };
  };
  return {{choice_column("strategy"), [](const auto& row) { return strategy_cell(row.point->training); }},
          {{"batch", "per rank"}, [](const auto& row) { return batch_cell(*row.point); }},
          {{"fits", "per rank", true, true},
           [](const auto& row) {
             return cells::unless_default(row.largest_batch == 0, cells::count(row.largest_batch));
           },
           "the largest batch by the memory of a rank, the program's buffers and the activations of the "
           "model's table; the report compares it with the one found."},
          {{"ranks", ""}, [](const auto& row) { return cells::count(row.point->ranks); }},
          {{"parameters", "MiB", true, false, memory}, mebibytes_of(&strategies::Cost::parameter_bytes)},
          {{"gradients", "MiB", true, false, memory}, mebibytes_of(&strategies::Cost::gradient_bytes)},
          {{"optimizer", "MiB", true, false, memory}, mebibytes_of(&strategies::Cost::optimizer_bytes)},
          {{"transient", "MiB", true, false, memory}, mebibytes_of(&strategies::Cost::transient_bytes)},
          {{"activations", "MiB", true, false, memory},
           [](const auto& row) { return cells::mebibytes(row.e.activation_bytes); },
           "at the height of a step, by the model's table: what forward keeps for backward and what the "
           "backward of a block needs."},
          {{"total", "MiB", true, false, memory},
           [](const auto& row) { return cells::mebibytes(row.e.total_bytes()); },
           "of the rank that has most: the buffers of its program, which tests compare with what strategies "
           "allocate."},
          {{"compute", "GFLOP", true, false, step},
           [](const auto& row) { return cells::number(row.e.flops_per_step / 1e9); }},
          {{"traffic", "MiB", true, false, step},
           mebibytes_of(&strategies::Cost::traffic_bytes),
           "what a ring sends: payload x ring factor, mean over ranks."},
          {{"operations", "", true, false, step},
           [](const auto& row) { return cells::count(row.e.cost.num_operations); }}};
}

int64_t largest_batch_of(const Point& point, const Expectation& of_one, int64_t limit_bytes) {
  const double program = of_one.cost.state_bytes();
  return strategies::largest_batch(strategies::RankStep(point).input(),
                                   static_cast<double>(limit_bytes) - program);
}

}  // namespace

Cell batch_cell(const Point& p) {
  return p.training.batch_size == kLargest ? cells::words("largest") : cells::count(p.training.batch_size);
}

Table training_table(const std::vector<const Point*>& points, const Expectations& expected,
                     int64_t limit_bytes) {
  std::vector<Expected> rows;
  for (const Point* point : points) {
    rows.push_back({point, expected.at(point)});
    if (limit_bytes > 0 && point->training.batch_size == kLargest)
      rows.back().largest_batch = largest_batch_of(*point, rows.back().e, limit_bytes);
  }
  return make_table("training", "Training points",
                    join(starting(Starts::section, point_setting_columns()), cost_columns()), rows);
}

}  // namespace shardmark
