// Memory of the largest rank against what the program of its strategy predicts.
#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/table/cells.h"
#include "analysis/tables/tables.h"
#include "analysis/tables/training_columns.h"

namespace shardmark {
namespace {

struct Kind {
  const char* name;
  double Measures::*measured;
  double Measures::*predicted;
};
constexpr std::array<Kind, 4> kKinds = {{
    {"parameters", &Measures::parameter_bytes, &Measures::predicted_parameter_bytes},
    {"gradients", &Measures::gradient_bytes, &Measures::predicted_gradient_bytes},
    {"optimizer state", &Measures::optimizer_bytes, &Measures::predicted_optimizer_bytes},
    {"transient", &Measures::transient_bytes, &Measures::predicted_transient_bytes},
}};

// Infinite where something is held and nothing was predicted.
double relative_error(const Measures& m, const Kind& kind) {
  const double measured = m.*kind.measured, predicted = m.*kind.predicted;
  return measured == predicted ? 0 : std::abs(measured / predicted - 1);
}

Cell largest_error(const MergedPoint& merged) {
  const Measures& m = merged.measures;
  const Kind& worst = *std::max_element(kKinds.begin(), kKinds.end(), [&](const Kind& a, const Kind& b) {
    return relative_error(m, a) < relative_error(m, b);
  });
  return cells::difference(m.*worst.measured, m.*worst.predicted);
}

ColumnsOf<MergedPoint> columns() {
  ColumnsOf<MergedPoint> columns;
  for (const Kind& kind : kKinds) {
    columns.push_back({{"measured", "MiB", true, false, kind.name},
                       mebibytes_of(kind.measured),
                       "on the rank that has most, MiB = 2^20 bytes."});
    columns.push_back({{"predicted", "MiB", true, false, kind.name},
                       mebibytes_of(kind.predicted),
                       "buffers of the strategy's program, padding included."});
  }
  columns.push_back({{"largest error", "%"},
                     largest_error,
                     "measured / predicted - 1 of the kind of memory with the largest error."});
  return columns;
}

}  // namespace

Table memory_table(const MergedPoints& points) {
  const TrainingColumns labels(points);
  Table table = make_table("memory", "Memory: measured against predicted", join(labels.columns(), columns()),
                           training_points(points, [](const auto& merged) {
                             return !std::isnan(merged.measures.parameter_bytes);
                           }));
  table.explanations.emplace_back(
      "parameters, gradients, optimizer state: what a rank holds all the time. transient: the strategy's "
      "buffers (slots) for gathered parameters and for gradients being reduced.");
  return table;
}

}  // namespace shardmark
