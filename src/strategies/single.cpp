// single: every rank trains a replica of its own; nothing moves. The baseline of overhead ratios.
#include "strategies/paper.h"
#include "strategies/replica.h"

namespace shardmark::strategies {
namespace {

bool is_one_pass(const StepInput& input) {
  return input.fused_update && input.bytes.mixed() && input.accumulation == 1;
}

Program write(const StepInput& input, const Schedule& schedule) {
  StepBuilder step("single", input, schedule, specs::even_layout(input.model, Team{}));
  step.program().gradient_scale = 1.0 / static_cast<double>(input.accumulation);
  Replica replica(step, is_one_pass(input) ? Element::compute : Element::master);
  return write_step(step, {&replica});
}

Cost paper(const StepInput& input) { return replica_cost(Sizes(input), is_one_pass(input)); }

const Registration<Strategy> registered{
    "single", {"independent replicas, one per rank; the baseline of ratios", {}, write, paper}};

}  // namespace
}  // namespace shardmark::strategies
