// single: every rank trains a replica of its own, and nothing is communicated. It is the baseline of ratios.
#include "strategies/paper.h"
#include "strategies/replica.h"

namespace shardmark::strategies::single_device {
namespace {

// Several micro-batches are added up in the master type. A single one may stay in the compute type.
Element reduced_in(const StepInput& input) {
  return input.fused_update && input.accumulation == 1 ? Element::compute : Element::master;
}

Program write(const StepInput& input, const Schedule& schedule) {
  StepBuilder step("single", input, schedule, specs::even_layout(input.model, ProcessGroup{}));
  step.program().gradient_scale = 1.0 / static_cast<double>(input.accumulation);
  Replica replica(step, reduced_in(input));
  return write_step(step, {&replica});
}

Cost paper(const StepInput& input) {
  return replica_cost(Sizes(input), updates_in_one_pass(input, reduced_in(input)));
}

const Registration<Strategy> registered{
    "single", {"independent replicas, one per rank; the baseline of ratios", {}, write, paper}};

}  // namespace
}  // namespace shardmark::strategies::single_device
