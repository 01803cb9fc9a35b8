// What a step moved: counted beside the formula of the strategy's paper, and by phase as its program was
// recorded.
#include <cmath>

#include "analysis/frame/known.h"
#include "analysis/frame/phase_traffic.h"
#include "analysis/frame/quantities.h"
#include "analysis/frame/training_columns.h"
#include "analysis/predict/predictor.h"
#include "analysis/table/cells.h"
#include "analysis/tables/tables.h"
#include "strategies/step_traffic.h"

namespace shardmark {
namespace {

struct MovedPoint {
  const MergedPoint* merged;
  strategies::StepTraffic by_phase;  // nothing where no program was recorded
};

}  // namespace

Table communication_table(const MergedPoints& points) {
  std::vector<MovedPoint> rows;
  for (const MergedPoint* merged : training_points(points)) {
    const Series* series = merged->records.empty() ? nullptr : merged->records.front()->series("program");
    const auto by_phase =
        series == nullptr ? strategies::StepTraffic{} : strategies::step_traffic(program_or_nothing(*series));
    if (!std::isnan(merged->measures.traffic_bytes) || by_phase != strategies::StepTraffic{})
      rows.push_back({merged, by_phase});
  }
  const TrainingColumns labels(points);
  Table table = make_table(
      "phases.communication", "Communication of a step: counted, predicted, and by phase",
      join(via(&MovedPoint::merged, labels.columns()),
           columns_of<MovedPoint>({{"num_operations"},
                                   {"traffic_bytes", "traffic"},
                                   {"predicted_traffic_bytes", "traffic"},
                                   {"traffic_error", "traffic"}}),
           through<MovedPoint>([](const MovedPoint& row) { return row.by_phase; }, phase_traffic_columns())),
      rows);
  table.explanations.emplace_back(
      "What a transport sends depends on its algorithms. Transport pt2pt sends exactly the ring bytes, "
      "except for an all-reduce of up to 4,000 B among 3 to 8 ranks: each sends all of it to every other "
      "if that is at most 12,000 B.");
  return table;
}

}  // namespace shardmark
