// Simulated steps in the form of measured ones.
#include <fmt/format.h>

#include "analysis/frame/known.h"
#include "analysis/predict/tables.h"
#include "strategies/brief_text.h"
#include "strategies/step_trace.h"

namespace shardmark {

std::vector<std::pair<std::string, std::string>> predicted_traces(
    const std::vector<PredictedPoint>& predicted) {
  std::vector<std::pair<std::string, std::string>> traces;
  for (const PredictedPoint& one : predicted) {
    const Prediction& prediction = one.prediction;
    if (!prediction.unknown.empty() || !known_table(prediction.point.training.model)) continue;
    const Stages stages(prediction.point);
    std::vector<strategies::SimulatedRank> ranks = prediction.stages;
    for (size_t stage = 0; stage < ranks.size(); ++stage) ranks[stage].program = &stages.programs[stage];
    std::vector<strategies::TimedStep> steps;
    simulate(ranks, prediction.progress, &steps);
    std::vector<std::string> events;
    for (size_t stage = 0; stage < steps.size(); ++stage)
      events.push_back(strategies::trace_events(
          *stages.steps[stage].part().table, static_cast<int64_t>(stage),
          fmt::format("{} {}, predicted", steps.size() > 1 ? "stage" : "rank", stage), {steps[stage]}));
    const std::string title = brief_text(prediction.point);
    traces.emplace_back(fmt::format("{}-{}-ranks-{}", prediction.point.training.strategy.name,
                                    prediction.point.ranks, traces.size() + 1),
                        strategies::trace_file(events, {{"step", title}, {"clocks", "simulated"}}));
  }
  return traces;
}

}  // namespace shardmark
