// What a step moves in each of its phases, by the strategies' formulas.
#include <set>
#include <tuple>

#include "analysis/cells.h"
#include "cli/plan_tables.h"
#include "laws/vocabulary.h"
#include "strategies/step_traffic.h"

namespace shardmark {
namespace {

std::vector<Cell> phase_cells(const strategies::PhaseTraffic& phase) {
  return {cells::count(phase.num_operations), cells::mebibytes(phase.bytes)};
}

std::vector<Column> phase_columns(const std::string& phase) {
  return {{"operations", "", true, false, phase}, {"traffic", "MiB", true, false, phase}};
}

}  // namespace

// Batch sizes move the same, so they share a row.
Table communication_table(const std::vector<const Point*>& points) {
  const std::vector<Column> what = {{"model", "", false, true},
                                    {"precision", "", false, true},
                                    {"reduced as", "", false, true},
                                    {"clip norm", "", true, true},
                                    {"accumulation", "", true, true},
                                    {"strategy", "", false},
                                    {"ranks", ""}};
  Table table{
      "communication",
      "Communication of a step by phase",
      {"Operations that a rank starts in the phase, and what a ring sends for them: payload x ring factor, "
       "mean "
       "over ranks. backward: until the update begins, with the rest of the gradients; update: with the sum "
       "for the gradient's norm and what hands updated parameters out.",
       "A strategy and number of ranks without a row moves nothing."},
      concat<Column>({what, phase_columns("forward"), phase_columns("backward"), phase_columns("update")}),
      {}};
  table.num_section_columns = 5;
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
    if (traffic == strategies::StepTraffic{}) continue;
    table.rows.push_back(concat<Cell>(
        {{cells::words(model_name(*point)), cells::words(t.precision),
          cells::unless_default(t.reduce_dtype == "same", cells::words(t.reduce_dtype)),
          cells::unless_default(t.clip_norm == 0, cells::number(t.clip_norm)), cells::count(t.accumulation),
          cells::words(strategy_name(*point)), cells::count(point->ranks)},
         phase_cells(traffic.forward),
         phase_cells(traffic.backward),
         phase_cells(traffic.update)}));
  }
  return table;
}

}  // namespace shardmark
