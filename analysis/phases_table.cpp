// Where the time of a step goes.
#include <cmath>

#include "analysis/cells.h"
#include "analysis/tables.h"
#include "analysis/training_columns.h"

namespace shardmark {
namespace {

constexpr double kMostOverlap = 1.1;  // 1 is all of it; beyond that noise

std::vector<Cell> phases(const Measures& m) {
  std::vector<Cell> row;
  double sum = 0;
  for (double phase : {m.data_s, m.forward_s, m.backward_s, m.exposed_s, m.optimizer_s}) {
    row.push_back(cells::milliseconds(phase));
    sum += phase;
  }
  row.push_back(cells::milliseconds(m.step_s));
  row.push_back(cells::percent(sum / m.step_s));
  row.push_back(cells::milliseconds(m.compute_only_s));
  row.push_back(cells::milliseconds(m.communication_only_s));
  // A difference of two steps says nothing about a communication shorter than their own spread, nor where the
  // part takes longer than the whole.
  const bool resolved = m.step_high_s - m.step_low_s < m.communication_only_s && m.overlap <= kMostOverlap;
  row.push_back(cells::percent(resolved ? m.overlap : Measures::kNone));
  return row;
}

std::vector<Column> columns() {
  return concat<Column>({TrainingColumns::columns(),
                         {{"data", "ms", true, false, "phase"},
                          {"forward", "ms", true, false, "phase"},
                          {"backward", "ms", true, false, "phase"},
                          {"exposed", "ms", true, false, "phase"},
                          {"optimizer", "ms", true, false, "phase"},
                          {"step", "ms"},
                          {"sum", "% of step"},
                          {"compute", "ms", true, true, "alone"},
                          {"comm.", "ms", true, true, "alone"},
                          {"overlap", "%", true, true, "alone"}}});
}

}  // namespace

Table phases_table(const MergedPoints& points) {
  Table table{"phases",
              "Phases: where the time of a step goes",
              {},
              columns(),
              {},
              TrainingColumns::kNumGroupColumns,
              TrainingColumns::kNumSectionColumns};
  const TrainingColumns labels(points);
  for (const MergedPoint& merged : points) {
    if (!is_training(merged) || std::isnan(merged.measures.forward_s)) continue;
    table.rows.push_back(concat<Cell>({labels.cells(merged), phases(merged.measures)}));
  }
  table.notes = {
      "data: waiting for the batch. exposed: waiting for communication; forward, backward: without it.",
      "Each phase is the median over the steps, on the rank that was slowest in that step.",
      "sum: the five phases together; medians of parts need not add up to the median of the whole exactly.",
      "alone: the step without its communication, and its communication without the step, measured later.",
      "overlap: 1 - (step - compute alone) / communication alone; below 0 where they hinder each other.",
      "No overlap: the step's interval is wider than that communication, or computing alone took longer.",
  };
  return table;
}

}  // namespace shardmark
