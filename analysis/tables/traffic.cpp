// Bytes that the strategy moved, counted and predicted by its formula.
#include <cmath>

#include "analysis/table/cells.h"
#include "analysis/tables/tables.h"
#include "analysis/tables/training_columns.h"

namespace shardmark {
namespace {

ColumnsOf<MergedPoint> traffic_columns() {
  return {
      {{"operations", "per step"},
       [](const auto& merged) { return cells::count(merged.measures.num_operations); },
       "collectives that a rank starts in a step."},
      {{"counted", "MB", true, false, "moved"},
       megabytes_of(&Measures::traffic_bytes),
       "per rank and step: payload of each collective as it was started, times its ring factor (all-reduce "
       "2(N-1)/N; all-gather, reduce-scatter, broadcast, reduce (N-1)/N); mean over ranks, MB = 10^6 bytes "
       "(Patarasuk and Yuan, JPDC 69(2), 2009)."},
      {{"predicted", "MB", true, false, "moved"},
       megabytes_of(&Measures::predicted_traffic_bytes),
       "by the formula of the strategy's paper, without padding."},
      {{"error", "%", true, false, "moved"},
       [](const auto& merged) {
         return cells::difference(merged.measures.traffic_bytes, merged.measures.predicted_traffic_bytes);
       },
       "counted / predicted - 1."},
      {{"exposed", "ms"},
       milliseconds_of(&Measures::exposed_s),
       "time during which computing waited for these operations."}};
}

}  // namespace

Table traffic_table(const MergedPoints& points) {
  const TrainingColumns labels(points);
  Table table = make_table(
      "traffic", "Traffic: counted against predicted", join(labels.columns(), traffic_columns()),
      training_points(points, [](const auto& merged) { return !std::isnan(merged.measures.traffic_bytes); }));
  table.explanations.emplace_back(
      "What a transport sends depends on its algorithms. Transport mpi sends exactly the ring bytes, except "
      "for an all-reduce of up to 4 KiB among up to 8 ranks, where every rank sends all of it to every "
      "other.");
  return table;
}

}  // namespace shardmark
