// Predictions beside what was measured.
#include <algorithm>
#include <cmath>

#include "analysis/frame/training_columns.h"
#include "analysis/predict/tables.h"
#include "analysis/table/cells.h"
#include "base/stats.h"
#include "base/units.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

std::string summary(const Predictor& predictor) {
  std::vector<double> errors;
  for (const HeldOut& held : predictor.held_out()) errors.push_back(std::abs(held.error()));
  const double largest = *std::max_element(errors.begin(), errors.end());
  return brief_text("transport", predictor.transport()) + ": " + std::to_string(errors.size()) +
         " points, median error " + format_number(100 * median(errors), 2) + " %, largest " +
         format_number(100 * largest, 2) + " %; one second of computing completes " +
         format_number(predictor.progress(), 2) + " s of communication.";
}

auto predicted(double SimulatedStep::*seconds) {
  return [seconds](const HeldOut& held) { return cells::milliseconds(held.predicted.*seconds); };
}

ColumnsOf<HeldOut> step_columns() {
  constexpr const char* kPart = "as predicted.";
  return {
      {{"measured", "ms"},
       [](const auto& held) { return cells::milliseconds(held.merged->measures.step_s); }},
      {{"predicted", "ms"},
       predicted(&SimulatedStep::step_s),
       "from the study's collectives, and from the computing of the other points of the model: other "
       "strategies at the same batch, other batches of the same strategy; with the growth with nodes that "
       "the other points say."},
      {{"error", "%"},
       [](const auto& held) {
         return cells::difference(held.predicted.step_s, held.merged->measures.step_s);
       },
       "predicted / measured - 1; the point's own block times, update and step are not used, not even in "
       "the fits of stretch and progress."},
      {{"computing", "ms"}, predicted(&SimulatedStep::compute_s), kPart},
      {{"communication", "ms"}, predicted(&SimulatedStep::communication_s), kPart},
      {{"exposed", "ms"}, predicted(&SimulatedStep::exposed_s), kPart}};
}

}  // namespace

Table held_out_table(const std::vector<MergedPoint>& points, const std::vector<Predictor>& predictors) {
  std::vector<const HeldOut*> rows;
  std::vector<std::string> summaries;
  for (const Predictor& predictor : predictors) {
    for (const HeldOut& held : predictor.held_out()) rows.push_back(&held);
    if (!predictor.held_out().empty()) summaries.push_back(summary(predictor));
  }
  const TrainingColumns labels(points);
  Table table = make_table("held_out", "Predicted against measured: each point without its own measurement",
                           join(via(&HeldOut::merged, labels.columns()), step_columns()), rows);
  table.notes.insert(table.notes.begin(), summaries.begin(), summaries.end());
  return table;
}

}  // namespace shardmark
