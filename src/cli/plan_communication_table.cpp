// What a step moves in each of its phases, by the strategies' formulas.
#include <array>
#include <set>

#include "analysis/axis_columns.h"
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

// The settings that change what a step communicates.
constexpr std::array kSettings = {"model", "precision", "reduce_dtype", "clip_norm", "accumulation"};

}  // namespace

// Batch sizes move the same, so they share a row.
Table communication_table(const std::vector<const Point*>& points) {
  std::vector<Column> settings;
  for (const char* key : kSettings) settings.push_back(axis_column(axis_named(key)));
  Table table{
      "communication",
      "Communication of a step by phase",
      {"Operations that a rank starts in the phase, and what a ring sends for them: payload x ring factor, "
       "mean "
       "over ranks. backward: until the update begins, with the rest of the gradients; update: with the sum "
       "for the gradient's norm and what hands updated parameters out.",
       "A strategy and number of ranks without a row moves nothing."},
      concat<Column>({settings,
                      {{"strategy", "", false}, {"ranks", ""}},
                      phase_columns("forward"),
                      concat<Column>({phase_columns("backward"), phase_columns("update")})}),
      {}};
  table.num_section_columns = kSettings.size();
  std::set<std::string> known;  // the cells of a row
  for (const Point* point : points) {
    const TrainingPoint& t = point->training;
    std::vector<Cell> cells;
    for (const char* key : kSettings) cells.push_back(setting_cell(axis_named(key), *point));
    cells.push_back(cells::words(strategy_name(*point)));
    cells.push_back(cells::count(point->ranks));
    std::string text;
    for (const Cell& cell : cells) text += cell.value.dump() + "\n";
    const bool is_new = known.insert(text).second;
    if (!is_new || point->ranks == 1) continue;
    const auto model = laws::model_law(t.model.name).table(t.model.options);
    const auto traffic = strategies::step_traffic(
        strategies::strategy(t.strategy.name).step(strategies::step_input(*point, model)));
    if (traffic == strategies::StepTraffic{}) continue;
    table.rows.push_back(concat<Cell>(
        {cells, phase_cells(traffic.forward), phase_cells(traffic.backward), phase_cells(traffic.update)}));
  }
  return table;
}

}  // namespace shardmark
