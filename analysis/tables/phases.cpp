// Where the time of a step goes.
#include <cmath>

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

// A difference of two steps says nothing about a communication shorter than their own spread, nor where the
// part takes longer than the whole.
Cell overlap_cell(const MergedPoint& merged) {
  const Measures& m = merged.measures;
  const bool resolved = m.step_high_s - m.step_low_s < m.communication_only_s && m.overlap <= kMostOverlap;
  return cells::percent(resolved ? m.overlap : Measures::kNone);
}

constexpr const char* kComputing = "without waiting for communication.";

ColumnsOf<MergedPoint> phase_columns() {
  return {
      {{"data", "ms", true, false, "phase"},
       milliseconds_of(&Measures::data_s),
       "waiting for the batch. Each phase is the median over the steps, on the rank that was slowest in that "
       "step."},
      {{"forward", "ms", true, false, "phase"}, milliseconds_of(&Measures::forward_s), kComputing},
      {{"backward", "ms", true, false, "phase"}, milliseconds_of(&Measures::backward_s), kComputing},
      {{"exposed", "ms", true, false, "phase"},
       milliseconds_of(&Measures::exposed_s),
       "waiting for communication."},
      {{"tensor", "ms", true, true, "of exposed"},
       milliseconds_of(&Measures::exposed_tensor_s),
       "waiting for ranks that share the same blocks."},
      {{"context", "ms", true, true, "of exposed"},
       milliseconds_of(&Measures::exposed_context_s),
       "waiting for ranks that share the same sequences."},
      {{"stages", "ms", true, true, "of exposed"},
       milliseconds_of(&Measures::exposed_pipeline_s),
       "waiting for other stages of a pipeline: its bubble, and messages that nothing hides."},
      {{"optimizer", "ms", true, false, "phase"}, milliseconds_of(&Measures::optimizer_s)},
      {{"step", "ms"}, milliseconds_of(&Measures::step_s)},
      {{"sum", "% of step"},
       sum_cell,
       "the five phases together; medians of parts need not add up to the median of the whole exactly."},
      {{"compute", "ms", true, true, "alone"},
       milliseconds_of(&Measures::compute_only_s),
       "the step with communication disabled, measured separately: median over the steps of the slowest "
       "rank."},
      {{"comm.", "ms", true, true, "alone"},
       milliseconds_of(&Measures::communication_only_s),
       "the recorded operations of the step without its computing, likewise."},
      {{"overlap", "%", true, true, "alone"},
       overlap_cell,
       "1 - (step - compute alone) / communication alone; below 0 where they slow each other down. Not given "
       "where "
       "the step has no interval or one that is wider than that communication, or computing alone took "
       "longer."}};
}

}  // namespace

Table phases_table(const MergedPoints& points) {
  const TrainingColumns labels(points);
  return make_table(
      "phases", "Phases: where the time of a step goes", join(labels.columns(), phase_columns()),
      training_points(points, [](const auto& merged) { return !std::isnan(merged.measures.forward_s); }));
}

}  // namespace shardmark
