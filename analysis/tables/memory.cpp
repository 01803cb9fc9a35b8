// Memory of the largest rank against what formulas predict.
#include <array>
#include <cmath>

#include "analysis/table/cells.h"
#include "analysis/tables/tables.h"
#include "analysis/tables/training_columns.h"

namespace shardmark {
namespace {

struct Kind {
  const char* name;
  double (*measured)(const Measures& m);
  double Measures::*predicted;
};
constexpr std::array<Kind, 5> kKinds = {{
    {"parameters", [](const Measures& m) { return m.parameter_bytes; }, &Measures::predicted_parameter_bytes},
    {"gradients", [](const Measures& m) { return m.gradient_bytes; }, &Measures::predicted_gradient_bytes},
    {"optimizer state", [](const Measures& m) { return m.optimizer_bytes; },
     &Measures::predicted_optimizer_bytes},
    {"transient", [](const Measures& m) { return m.transient_bytes; }, &Measures::predicted_transient_bytes},
    {"activations", [](const Measures& m) { return m.activation_bytes(); },
     &Measures::predicted_activation_bytes},
}};

ColumnsOf<MergedPoint> columns() {
  constexpr const char* kPeak = "peak";
  ColumnsOf<MergedPoint> columns;
  for (const Kind& kind : kKinds) {
    columns.push_back({{"measured", "MiB", true, false, kind.name},
                       [measured = kind.measured](const auto& merged) {
                         return cells::mebibytes(measured(merged.measures));
                       },
                       "on the rank that has most, MiB = 2^20 bytes."});
    columns.push_back(
        {{"error", "%", true, false, kind.name},
         [kind](const auto& merged) {
           return cells::difference(kind.measured(merged.measures), merged.measures.*kind.predicted);
         },
         "measured / predicted - 1, predicted by the formula of the strategy's paper, without padding; "
         "activations by the model's table."});
  }
  columns.push_back(
      {{"predicted", "MiB", true, false, kPeak},
       [](const auto& merged) { return cells::mebibytes(merged.measures.predicted_peak_bytes()); },
       "all five together."});
  columns.push_back({{"error", "%", true, false, kPeak},
                     [](const auto& merged) {
                       return cells::difference(merged.measures.peak_bytes,
                                                merged.measures.predicted_peak_bytes());
                     },
                     "measured / predicted - 1 of the most memory that a rank held in a step."});
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
      "buffers (slots) for gathered parameters and for gradients being reduced. activations: the peak of a "
      "step without these: what forward keeps for backward, the batch, working memory of a block and of the "
      "transport.");
  return table;
}

}  // namespace shardmark
