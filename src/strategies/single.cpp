// single: every rank trains a replica of its own; nothing moves. The baseline of overhead ratios.
#include "strategies/replica.h"

namespace shardmark::strategies {
namespace {

Program write(const StepInput& input, bool trains) {
  StepBuilder step("single", input, specs::even_layout(input.model, 1));
  Replica replica(step, Element::master);
  step.program().gradient_scale = 1.0 / static_cast<double>(input.accumulation);
  for (int64_t m = 0; m < (trains ? input.accumulation : 1); ++m) {
    step.load();
    for (int64_t block = 0; block < step.num_blocks(); ++block) step.forward(block);
    for (int64_t block = step.num_blocks() - 1; trains && block >= 0; --block) {
      step.backward(block);
      for (const size_t group : step.complete_after(block)) replica.collect(group);
    }
  }
  if (trains) {
    replica.finish();
    replica.update();
  }
  return step.finish();
}

const Registration<Strategy> registered{
    "single", {"independent replicas, one per rank; the baseline of ratios", {}, write}};

}  // namespace
}  // namespace shardmark::strategies
