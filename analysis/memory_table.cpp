// Memory of the largest rank against the law of its strategy.
#include <cmath>

#include "analysis/cells.h"
#include "analysis/tables.h"
#include "analysis/training_columns.h"

namespace shardmark {
namespace {

std::vector<Cell> compared(const Measures& m) {
  const std::array<std::pair<double, double>, 4> kinds = {{{m.parameter_bytes, m.law_parameter_bytes},
                                                           {m.gradient_bytes, m.law_gradient_bytes},
                                                           {m.optimizer_bytes, m.law_optimizer_bytes},
                                                           {m.transient_bytes, m.law_transient_bytes}}};
  std::vector<Cell> row;
  for (const auto& [measured, by_law] : kinds) {
    row.push_back(cells::mebibytes(measured));
    row.push_back(cells::mebibytes(by_law));
    row.push_back(cells::difference(measured, by_law));
  }
  return row;
}

std::vector<Column> columns() {
  std::vector<Column> columns = TrainingColumns::columns();
  for (const char* kind : {"parameters", "gradients", "optimizer state", "transient"}) {
    columns.push_back({"is", "MiB", true, false, kind});
    columns.push_back({"law", "MiB", true, false, kind});
    columns.push_back({"off by", "%", true, false, kind});
  }
  return columns;
}

}  // namespace

Table memory_table(const MergedPoints& points) {
  Table table{"memory",
              "Memory: measured against the law",
              {},
              columns(),
              {},
              TrainingColumns::kNumGroupColumns,
              TrainingColumns::kNumSectionColumns};
  const TrainingColumns labels(points);
  for (const MergedPoint& merged : points) {
    if (!is_training(merged) || std::isnan(merged.measures.parameter_bytes)) continue;
    table.rows.push_back(concat<Cell>({labels.cells(merged), compared(merged.measures)}));
  }
  table.notes = {
      "is: measured on the rank that has most, MiB = 2^20 bytes. law: what the strategy's formula says, "
      "padding included.",
      "parameters, gradients, optimizer state: what a rank holds all the time. transient: the strategy's "
      "slots for gathered "
      "parameters and for gradients on their way.",
  };
  return table;
}

}  // namespace shardmark
