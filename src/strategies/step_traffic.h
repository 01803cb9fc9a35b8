// What a step moves, by the phase in which its operations start.
#pragma once

#include "strategies/program.h"

namespace shardmark::strategies {

struct PhaseTraffic {
  int64_t num_operations =
      0;             // of the stage of a pipeline that starts most in a step: as Cost::num_operations
  double bytes = 0;  // payload x ring factor, mean over ranks: as Cost::traffic_bytes
  bool operator==(const PhaseTraffic&) const = default;
};

// backward: with what starts between the last block and the update, which is the rest of the gradients.
struct StepTraffic {
  PhaseTraffic forward, backward, update;
  bool operator==(const StepTraffic&) const = default;
};

StepTraffic step_traffic(const Program& program);
StepTraffic step_traffic(const std::vector<Program>& stages);

}  // namespace shardmark::strategies
