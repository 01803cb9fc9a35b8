// See stages.h.
#include "strategies/stages.h"

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

StagesCost cost_of(const Stages& stages, double samples) {
  StagesCost most;
  double traffic_bytes = 0;
  for (size_t stage = 0; stage < stages.programs.size(); ++stage) {
    const StepInput& input = stages.steps[stage].input();
    const StagesCost of_stage{cost_of(stages.programs[stage], input),
                              strategies::activation_bytes(input, samples)};
    traffic_bytes += of_stage.cost.traffic_bytes / static_cast<double>(stages.programs.size());
    if (stage == 0 || of_stage.total_bytes() > most.total_bytes()) most = of_stage;
  }
  most.cost.traffic_bytes = traffic_bytes;
  return most;
}

}  // namespace shardmark::strategies
