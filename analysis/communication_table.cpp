// What a step moved in each of its phases, as its program was recorded, and what the strategy's formula says.
#include <fmt/format.h>

#include <cmath>

#include "analysis/cells.h"
#include "analysis/known.h"
#include "analysis/predict/predictor.h"
#include "analysis/tables.h"
#include "analysis/training_columns.h"
#include "strategies/step_traffic.h"

namespace shardmark {
namespace {

std::vector<Column> phase_columns(const std::string& phase) {
  return {{"operations", "", true, false, phase}, {"moved", "MB", true, false, phase}};
}

std::vector<Cell> phase_cells(const strategies::PhaseTraffic& phase) {
  return {cells::count(phase.num_operations), cells::number(phase.bytes / 1e6)};
}

std::string phase_text(const char* name, const strategies::PhaseTraffic& phase) {
  return fmt::format("{} {} of {} MB", name, phase.num_operations, cells::number(phase.bytes / 1e6).text);
}

// "agrees", or what it says instead; nothing where this program knows no formula for the point.
Cell formula_cell(const MergedPoint& merged, const strategies::StepTraffic& recorded) {
  const auto program = known_program(merged.point);
  if (!program) return {"", nullptr};
  const strategies::StepTraffic formula = strategies::step_traffic(*program);
  if (formula == recorded) return cells::words("agrees");
  return cells::words(fmt::format("{}, {}, {}", phase_text("forward", formula.forward),
                                  phase_text("backward", formula.backward),
                                  phase_text("update", formula.update)));
}

}  // namespace

Table communication_table(const MergedPoints& points) {
  Table table{
      "communication",
      "Communication of a step by phase",
      {"Operations that rank 0 started in the phase, as it recorded them, and their payload x ring factor, "
       "MB = "
       "10^6 bytes. backward: until the update begins, with the rest of the gradients; update: with the sum "
       "for the gradient's norm and what hands updated parameters out.",
       "formula: whether the strategy's formula says the same, or what it says."},
      concat<Column>(
          {TrainingColumns::columns(),
           concat<Column>({phase_columns("forward"), phase_columns("backward"), phase_columns("update")}),
           {{"formula", "", false, true}}}),
      {},
      TrainingColumns::kNumGroupColumns,
      TrainingColumns::kNumSectionColumns};
  const TrainingColumns labels(points);
  for (const MergedPoint& merged : points) {
    const Series* series = merged.records.empty() ? nullptr : merged.records.front()->series("program");
    if (!is_training(merged) || series == nullptr) continue;
    const strategies::StepTraffic moved = strategies::step_traffic(program_or_nothing(*series));
    if (moved == strategies::StepTraffic{}) continue;
    table.rows.push_back(concat<Cell>(
        {labels.cells(merged),
         concat<Cell>({phase_cells(moved.forward), phase_cells(moved.backward), phase_cells(moved.update)}),
         {formula_cell(merged, moved)}}));
  }
  return table;
}

}  // namespace shardmark
