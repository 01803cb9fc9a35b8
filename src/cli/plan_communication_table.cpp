// What a step moves in each of its phases, by the strategies' formulas.
#include <set>
#include <tuple>

#include "cli/plan_tables.h"
#include "laws/vocabulary.h"
#include "strategies/step_traffic.h"

namespace shardmark {
namespace {

struct Row {
  const Point* point;
  strategies::StepTraffic traffic;
};

ColumnsOf<Row> setting_columns() {
  return {{{"model", "", false, true, "", Starts::section},
           [](const auto& row) { return cells::words(model_name(*row.point)); }},
          {{"precision", "", false, true, "", Starts::section},
           [](const auto& row) { return cells::words(row.point->training.precision); }},
          {{"reduced as", "", false, true, "", Starts::section},
           [](const auto& row) {
             const std::string& dtype = row.point->training.reduce_dtype;
             return cells::unless_default(dtype == "same", cells::words(dtype));
           }},
          {{"clip norm", "", true, true, "", Starts::section},
           [](const auto& row) {
             const double norm = row.point->training.clip_norm;
             return cells::unless_default(norm == 0, cells::number(norm));
           }},
          {{"accumulation", "", true, true, "", Starts::section},
           [](const auto& row) { return cells::count(row.point->training.accumulation); }},
          {{"strategy", "", false}, [](const auto& row) { return cells::words(strategy_name(*row.point)); }},
          {{"ranks", ""}, [](const auto& row) { return cells::count(row.point->ranks); }}};
}

ColumnsOf<Row> phase_columns(const char* name, strategies::PhaseTraffic strategies::StepTraffic::*phase) {
  return {
      {{"operations", "", true, false, name},
       [=](const auto& row) { return cells::count((row.traffic.*phase).num_operations); },
       "that a rank starts in the phase. backward: until the update begins, with the rest of the gradients; "
       "update: with the sum for the gradient's norm and what hands updated parameters out."},
      {{"traffic", "MiB", true, false, name},
       [=](const auto& row) { return cells::mebibytes((row.traffic.*phase).bytes); },
       "what a ring sends for these operations: payload x ring factor, mean over ranks."}};
}

}  // namespace

// Batch sizes move the same, so they share a row.
Table communication_table(const std::vector<const Point*>& points) {
  std::vector<Row> rows;
  std::set<std::tuple<std::string, std::string, std::string, double, int64_t, std::string, int64_t>> known;
  for (const Point* point : points) {
    const TrainingPoint& t = point->training;
    const bool is_new = known
                            .emplace(model_name(*point), t.precision, t.reduce_dtype, t.clip_norm,
                                     t.accumulation, to_text(t.strategy), point->ranks)
                            .second;
    if (!is_new || point->ranks == 1) continue;
    const auto model = laws::model_law(t.model.name).table(t.model.options);
    const auto traffic = strategies::step_traffic(
        strategies::strategy(t.strategy.name).step(strategies::step_input(*point, model)));
    if (traffic != strategies::StepTraffic{}) rows.push_back({point, traffic});
  }
  Table table =
      make_table("communication", "Communication of a step by phase",
                 join(setting_columns(), phase_columns("forward", &strategies::StepTraffic::forward),
                      phase_columns("backward", &strategies::StepTraffic::backward),
                      phase_columns("update", &strategies::StepTraffic::update)),
                 rows);
  table.notes.emplace_back("A strategy and number of ranks without a row moves nothing.");
  return table;
}

}  // namespace shardmark
