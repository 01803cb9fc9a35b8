// Memory of the largest rank against the law of its strategy.
#include <cmath>

#include "analysis/cells.h"
#include "analysis/tables.h"
#include "analysis/training_columns.h"

namespace shardmark {
namespace {

ColumnsOf<MergedPoint> compared(const char* kind, double Measures::*measured, double Measures::*by_law) {
  return {{{"is", "MiB", true, false, kind},
           mebibytes_of(measured),
           "measured on the rank that has most, MiB = 2^20 bytes."},
          {{"law", "MiB", true, false, kind},
           mebibytes_of(by_law),
           "what the strategy's formula says, padding included."},
          {{"off by", "%", true, false, kind},
           [=](const auto& merged) {
             return cells::difference(merged.measures.*measured, merged.measures.*by_law);
           },
           "is / law - 1."}};
}

}  // namespace

Table memory_table(const MergedPoints& points) {
  const TrainingColumns labels(points);
  Table table = make_table(
      "memory", "Memory: measured against the law",
      join(labels.columns(),
           compared("parameters", &Measures::parameter_bytes, &Measures::law_parameter_bytes),
           compared("gradients", &Measures::gradient_bytes, &Measures::law_gradient_bytes),
           compared("optimizer state", &Measures::optimizer_bytes, &Measures::law_optimizer_bytes),
           compared("transient", &Measures::transient_bytes, &Measures::law_transient_bytes)),
      training_points(points,
                      [](const auto& merged) { return !std::isnan(merged.measures.parameter_bytes); }));
  table.notes.emplace_back(
      "parameters, gradients, optimizer state: what a rank holds all the time. transient: the strategy's "
      "slots for gathered parameters and for gradients on their way.");
  return table;
}

}  // namespace shardmark
