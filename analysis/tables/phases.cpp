// Where the time of a step goes.
#include <cmath>

#include "analysis/frame/quantities.h"
#include "analysis/frame/training_columns.h"
#include "analysis/table/cells.h"
#include "analysis/tables/tables.h"

namespace shardmark {
namespace {

constexpr double kMostOverlap = 1.1;  // 1 is all of it; beyond that noise

Cell sum_cell(const MergedPoint& merged) {
  const Measures& m = merged.measures;
  return cells::percent((m.data_s + m.forward_s + m.backward_s + m.exposed_s + m.optimizer_s) / m.step_s);
}

// Overlap follows from the difference of two steps. It says nothing if the communication is shorter than
// the step's own interval is wide, nor if more than all of it would be hidden.
Cell overlap_cell(const MergedPoint& merged) {
  const Measures& m = merged.measures;
  const bool resolved = m.step_high_s - m.step_low_s < m.communication_only_s && m.overlap <= kMostOverlap;
  return cells::percent(resolved ? m.overlap : Measures::kNone);
}

ColumnsOf<MergedPoint> phase_columns() {
  const ColumnsOf<MergedPoint> sum = {
      {{"sum", "% of step"},
       sum_cell,
       "the five phases together; medians of parts need not add up to the median of the whole exactly."}};
  const ColumnsOf<MergedPoint> overlap = {
      {{"overlap", "%", true, true, "alone"},
       overlap_cell,
       "1 - (step - compute alone) / communication alone; below 0 where they slow each other down. Not given "
       "where the step has no interval or one that is wider than that communication, or computing alone took "
       "longer."}};
  return join(
      columns_of({{"data_time", "phase"},
                  {"forward_time", "phase"},
                  {"backward_time", "phase"},
                  {"exposed_time", "phase"},
                  {"exposed_tensor_time", "of exposed", "", true},
                  {"exposed_context_time", "of exposed", "", true},
                  {"exposed_expert_time", "of exposed", "", true},
                  {"exposed_pipeline_time", "of exposed", "", true},
                  {"optimizer_time", "phase"},
                  {"step"}}),
      sum,
      columns_of({{"compute_only_time", "alone", "", true}, {"communication_only_time", "alone", "", true}}),
      overlap);
}

}  // namespace

Table phases_table(const MergedPoints& points) {
  const TrainingColumns labels(points);
  return make_table(
      "phases", "Phases: where the time of a step goes", join(labels.columns(), phase_columns()),
      training_points(points, [](const auto& merged) { return !std::isnan(merged.measures.forward_s); }));
}

}  // namespace shardmark
