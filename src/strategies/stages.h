// The programs of a training point, one for each stage of its pipeline, and what they cost.
#pragma once

#include <vector>

#include "strategies/strategy.h"

namespace shardmark::strategies {

// The steps of the first rank of each stage. Without a pipeline there is one stage.
struct Stages {
  explicit Stages(const Point& point);
  std::vector<RankStep> steps;
  std::vector<Program> programs;
};

// What a rank needs. Traffic is the mean over all ranks, and the number of operations is that of the stage
// that starts most.
struct StagesCost {
  Cost cost;
  double activation_bytes = 0;  // for a given number of samples per micro-batch, by the model's table
  double total_bytes() const { return cost.state_bytes() + activation_bytes; }
};
std::vector<StagesCost> costs_of(const Stages& stages, double samples);  // of each stage
StagesCost cost_of(const Stages& stages, double samples);  // of the stage that needs most memory

}  // namespace shardmark::strategies
