// Predictions beside what was measured.
#include <algorithm>
#include <cmath>

#include "analysis/cells.h"
#include "analysis/predict/tables.h"
#include "analysis/training_columns.h"
#include "base/stats.h"
#include "base/units.h"

namespace shardmark {
namespace {

std::string summary(const Predictor& predictor) {
  std::vector<double> errors;
  for (const HeldOut& held : predictor.held_out()) errors.push_back(std::abs(held.error()));
  const double largest = *std::max_element(errors.begin(), errors.end());
  return predictor.transport() + ": " + std::to_string(errors.size()) + " points, median error " +
         format_number(100 * median(errors), 2) + " %, largest " + format_number(100 * largest, 2) +
         " %; of a second of communication " + format_number(predictor.progress(), 2) +
         " s get done in a second of computing.";
}

}  // namespace

Table held_out_table(const std::vector<MergedPoint>& points, const std::vector<Predictor>& predictors) {
  Table table{"held_out",
              "Predicted against measured: each point without its own measurement",
              {},
              concat<Column>({TrainingColumns::columns(),
                              {{"measured", "ms"},
                               {"predicted", "ms"},
                               {"error", "%"},
                               {"computing", "ms"},
                               {"communication", "ms"},
                               {"exposed", "ms"}}}),
              {},
              TrainingColumns::kNumGroupColumns,
              TrainingColumns::kNumSectionColumns};
  const TrainingColumns labels(points);
  for (const Predictor& predictor : predictors) {
    if (predictor.held_out().empty()) continue;
    for (const HeldOut& held : predictor.held_out()) {
      const SimulatedStep& step = held.predicted;
      table.rows.push_back(concat<Cell>(
          {labels.cells(*held.merged),
           {cells::milliseconds(held.merged->measures.step_s), cells::milliseconds(step.step_s),
            cells::difference(step.step_s, held.merged->measures.step_s), cells::milliseconds(step.compute_s),
            cells::milliseconds(step.communication_s), cells::milliseconds(step.exposed_s)}}));
    }
    table.notes.push_back(summary(predictor));
  }
  table.notes.push_back(
      "Predicted from the study's collectives, and from the computing of the other points of the model: "
      "other "
      "strategies at the same batch, other batches of the same strategy. computing, communication, exposed: "
      "as predicted.");
  return table;
}

}  // namespace shardmark
