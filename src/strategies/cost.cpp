// Adds up the memory and the traffic of a program.
#include <algorithm>

#include "strategies/strategy.h"

namespace shardmark::strategies {

Cost cost_of(const Program& program, const StepInput& input) {
  Cost cost;
  for (const Buffer& buffer : program.buffers) {
    const auto each = static_cast<double>(bytes_of(buffer.element, input.bytes));
    const double bytes = each * static_cast<double>(buffer.most_numel);
    (buffer.use == Use::parameters  ? cost.parameter_bytes
     : buffer.use == Use::gradients ? cost.gradient_bytes
                                    : cost.transient_bytes) += bytes;
  }
  const double state = static_cast<double>(program.most_updated) * static_cast<double>(input.bytes.master);
  if (program.offload)
    // The host holds the state, and copies of the parameters and their gradients.
    cost.offloaded_bytes = state * static_cast<double>(2 + input.optimizer_elements);
  else
    cost.optimizer_bytes = state * static_cast<double>(input.optimizer_elements);
  for (const CollectiveCall& call : program.calls) cost.traffic_bytes += call.ring_bytes();
  cost.num_operations = static_cast<int64_t>(program.calls.size());
  return cost;
}

}  // namespace shardmark::strategies
