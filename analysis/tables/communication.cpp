// What a step moved in each of its phases, as its program was recorded.
#include "analysis/known.h"
#include "analysis/predict/predictor.h"
#include "analysis/table/cells.h"
#include "analysis/tables/tables.h"
#include "analysis/tables/training_columns.h"
#include "strategies/step_traffic.h"

namespace shardmark {
namespace {

struct MovedPoint {
  const MergedPoint* merged;
  strategies::StepTraffic moved;
};

ColumnsOf<MovedPoint> phase_columns(const char* name,
                                    strategies::PhaseTraffic strategies::StepTraffic::*phase) {
  return {{{"operations", "", true, false, name},
           [=](const auto& row) { return cells::count((row.moved.*phase).num_operations); },
           "that rank 0 started in the phase, as recorded. backward: until the update begins, including the "
           "rest of the gradients; update: including the all-reduce for the gradient norm and the "
           "distribution of updated parameters."},
          {{"moved", "MB", true, false, name},
           [=](const auto& row) { return cells::number((row.moved.*phase).bytes / 1e6); },
           "payload x ring factor of these operations, MB = 10^6 bytes."}};
}

}  // namespace

Table communication_table(const MergedPoints& points) {
  std::vector<MovedPoint> rows;
  for (const MergedPoint* merged : training_points(points)) {
    const Series* series = merged->records.empty() ? nullptr : merged->records.front()->series("program");
    if (series == nullptr) continue;
    const strategies::StepTraffic moved = strategies::step_traffic(program_or_nothing(*series));
    if (moved != strategies::StepTraffic{}) rows.push_back({merged, moved});
  }
  const TrainingColumns labels(points);
  return make_table("communication", "Communication of a step by phase",
                    join(via(&MovedPoint::merged, labels.columns()),
                         phase_columns("forward", &strategies::StepTraffic::forward),
                         phase_columns("backward", &strategies::StepTraffic::backward),
                         phase_columns("update", &strategies::StepTraffic::update)),
                    rows);
}

}  // namespace shardmark
