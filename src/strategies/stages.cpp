// See stages.h.
#include "strategies/stages.h"

#include <algorithm>

#include "strategies/activations.h"

namespace shardmark::strategies {

Stages::Stages(const Point& point) {
  const specs::Mesh mesh = specs::mesh_of(point);
  const Strategy& how = strategy(point.training.strategy.name);
  for (int64_t stage = 0; stage < mesh.pipeline; ++stage) {
    steps.emplace_back(point, stage * mesh.pipeline_team().stride);
    programs.push_back(how.step(steps.back().input()));
  }
}

std::vector<StagesCost> costs_of(const Stages& stages, double samples) {
  std::vector<StagesCost> costs;
  double traffic_bytes = 0;
  for (size_t stage = 0; stage < stages.programs.size(); ++stage) {
    const StepInput& input = stages.steps[stage].input();
    costs.push_back({cost_of(stages.programs[stage], input), strategies::activation_bytes(input, samples)});
    traffic_bytes += costs.back().cost.traffic_bytes / static_cast<double>(stages.programs.size());
  }
  for (StagesCost& one : costs) one.cost.traffic_bytes = traffic_bytes;
  return costs;
}

StagesCost cost_of(const Stages& stages, double samples) {
  const std::vector<StagesCost> costs = costs_of(stages, samples);
  return *std::max_element(costs.begin(), costs.end(), [](const StagesCost& a, const StagesCost& b) {
    return a.total_bytes() < b.total_bytes();
  });
}

}  // namespace shardmark::strategies
