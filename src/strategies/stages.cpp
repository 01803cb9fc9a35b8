// Writes a program for each stage: stages have different blocks and different places in the schedule.
#include "strategies/stages.h"

#include <algorithm>

#include "strategies/activations.h"

namespace shardmark::strategies {

Stages::Stages(const Point& point) {
  const specs::Mesh mesh = specs::mesh_of(point);
  const Strategy& how = strategy(point.training.strategy.name);
  const std::vector<int64_t> bounds = bounds_of_parts(point);
  for (int64_t stage = 0; stage < mesh.pipeline; ++stage) {
    steps.emplace_back(point, stage * mesh.pipeline_group().stride, bounds);
    programs.push_back(how.step(steps.back().input()));
  }
}

std::vector<StagesCost> costs_of(const Stages& stages, double samples) {
  std::vector<StagesCost> costs;
  double traffic_bytes = 0;
  int64_t num_operations = 0;
  for (size_t stage = 0; stage < stages.programs.size(); ++stage) {
    const StepInput& input = stages.steps[stage].input();
    costs.push_back({cost_of(stages.programs[stage], input), strategies::activation_bytes(input, samples)});
    traffic_bytes += costs.back().cost.traffic_bytes / static_cast<double>(stages.programs.size());
    num_operations = std::max(num_operations, costs.back().cost.num_operations);
  }
  // Memory is that of each stage. Traffic and operations are those of the whole pipeline, the same for all
  // stages.
  for (StagesCost& one : costs) {
    one.cost.traffic_bytes = traffic_bytes;
    one.cost.num_operations = num_operations;
  }
  return costs;
}

StagesCost cost_of(const Stages& stages, double samples) {
  const std::vector<StagesCost> costs = costs_of(stages, samples);
  return *std::max_element(costs.begin(), costs.end(), [](const StagesCost& a, const StagesCost& b) {
    return a.total_bytes() < b.total_bytes();
  });
}

}  // namespace shardmark::strategies
