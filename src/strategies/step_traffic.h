// The traffic of a step, by the phase in which its operations start.
#pragma once

#include "strategies/program.h"

namespace shardmark::strategies {

struct PhaseTraffic {
  // Operations of the pipeline stage that starts most of them in a step, as in Cost::num_operations.
  int64_t num_operations = 0;
  double bytes = 0;  // payload x ring factor, mean over ranks, as in Cost::traffic_bytes
  bool operator==(const PhaseTraffic&) const = default;
};

// backward includes what starts between the last block and the update, which is the rest of the gradients.
struct StepTraffic {
  PhaseTraffic forward, backward, update;
  bool operator==(const StepTraffic&) const = default;
};

StepTraffic step_traffic(const Program& program);
StepTraffic step_traffic(const std::vector<Program>& stages);

}  // namespace shardmark::strategies
