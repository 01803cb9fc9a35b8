// Bytes that the strategy moved, counted and by law.
#include <cmath>

#include "analysis/cells.h"
#include "analysis/tables.h"
#include "analysis/training_columns.h"

namespace shardmark {
namespace {

std::vector<Column> columns() {
  return concat<Column>({TrainingColumns::columns(),
                         {{"operations", "per step"},
                          {"counted", "MB", true, false, "moved"},
                          {"law", "MB", true, false, "moved"},
                          {"off by", "%", true, false, "moved"},
                          {"exposed", "ms"}}});
}

}  // namespace

Table traffic_table(const MergedPoints& points) {
  Table table{"traffic",
              "Traffic: counted against the law",
              {},
              columns(),
              {},
              TrainingColumns::kNumGroupColumns,
              TrainingColumns::kNumSectionColumns};
  const TrainingColumns labels(points);
  for (const MergedPoint& merged : points) {
    const Measures& m = merged.measures;
    if (!is_training(merged) || std::isnan(m.traffic_bytes)) continue;
    table.rows.push_back(concat<Cell>(
        {labels.cells(merged),
         {cells::count(m.num_operations), cells::number(m.traffic_bytes / 1e6),
          cells::number(m.law_traffic_bytes / 1e6), cells::difference(m.traffic_bytes, m.law_traffic_bytes),
          cells::milliseconds(m.exposed_s)}}));
  }
  table.notes = {
      "moved, per rank and step: counted: payload of each collective as it was started, times its ring "
      "factor (all-reduce 2(N-1)/N; all-gather, "
      "reduce-scatter, broadcast, reduce (N-1)/N); mean over ranks, MB = 10^6 bytes. law: the strategy's "
      "formula.",
      "What a transport sends depends on its algorithms. Transport mpi sends exactly the law's bytes, but "
      "for an "
      "all-reduce of up to 4 KiB among up to 8 ranks, which goes whole from everyone to everyone.",
      "operations: collectives that a rank starts in a step. exposed: time that computing waited for them.",
  };
  return table;
}

}  // namespace shardmark
