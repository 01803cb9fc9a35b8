// Simulated steps in the form of measured ones.
#include <fmt/format.h>

#include "analysis/known.h"
#include "analysis/predict/tables.h"
#include "strategies/brief_text.h"
#include "strategies/step_trace.h"

namespace shardmark {

std::vector<std::pair<std::string, std::string>> predicted_traces(
    const std::vector<PredictedPoint>& predicted) {
  std::vector<std::pair<std::string, std::string>> traces;
  for (const PredictedPoint& one : predicted) {
    const Prediction& prediction = one.prediction;
    const auto table = known_table(prediction.point.training.model);
    const auto program = known_program(prediction.point);
    if (!prediction.unknown.empty() || !table || !program) continue;
    strategies::TimedStep step;
    simulate(*program, prediction.times, prediction.operation_s, prediction.progress, &step);
    const std::string title = brief_text(prediction.point);
    traces.emplace_back(
        fmt::format("{}-{}-ranks-{}", prediction.point.training.strategy.name, prediction.point.ranks,
                    traces.size() + 1),
        strategies::trace_file({strategies::trace_events(*table, 0, "rank 0, predicted", {step})},
                               {{"step", title}, {"clocks", "simulated"}}));
  }
  return traces;
}

}  // namespace shardmark
