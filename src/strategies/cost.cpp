// What a program needs and moves, added up.
#include <algorithm>

#include "specs/specs.h"
#include "strategies/strategy.h"

namespace shardmark::strategies {

StepInput step_input(const Point& point, const ModelTable& table) {
  const TrainingPoint& t = point.training;
  return {table,
          point.ranks,
          t.accumulation,
          specs::element_bytes(t.precision, t.reduce_dtype),
          specs::optimizer_specs().at(t.optimizer.name).state_elements(t.optimizer.options),
          t.strategy.options,
          /*norm=*/t.clip_norm > 0 || t.precision == "fp16",
          /*rank=*/0,
          t.recompute,
          specs::masks_documents(t.data)};
}

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
    cost.offloaded_bytes = state * static_cast<double>(2 + input.optimizer_elements);
  else
    cost.optimizer_bytes = state * static_cast<double>(input.optimizer_elements);
  for (const CollectiveCall& call : program.calls)
    cost.traffic_bytes += call.bytes * specs::ring_factor(call.what, call.team.ranks);
  cost.num_operations = static_cast<int64_t>(program.calls.size());
  return cost;
}

}  // namespace shardmark::strategies
