// The programs of a point, one of each stage of its pipeline, and what they need.
#pragma once

#include <vector>

#include "strategies/strategy.h"

namespace shardmark::strategies {

// What the first rank of each stage does; of the job where there are no stages.
struct Stages {
  explicit Stages(const Point& point);
  std::vector<RankStep> steps;
  std::vector<Program> programs;
};

// What a rank needs. Traffic is the mean over all ranks; operations are those of the stage that starts most.
struct StagesCost {
  Cost cost;
  double activation_bytes = 0;  // of so many samples in a micro-batch, by the model's table
  double total_bytes() const { return cost.state_bytes() + activation_bytes; }
};
std::vector<StagesCost> costs_of(const Stages& stages, double samples);  // of each stage
StagesCost cost_of(const Stages& stages, double samples);  // of the stage that needs most memory

}  // namespace shardmark::strategies
