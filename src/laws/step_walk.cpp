// Blocks forward, blocks backward, step.
#include "laws/step_walk.h"

namespace shardmark::laws {

Program StepWalk::program(const CostInput& input) {
  using What = Moment::What;
  const size_t num_blocks = input.model.blocks.size();
  for (int64_t i = 0; i < input.accumulation; ++i) {
    made_.add(What::data);
    begin_micro_batch(/*last=*/i + 1 == input.accumulation);
    for (size_t block = 0; block < num_blocks; ++block) {
      before_forward(block);
      made_.add(What::forward, static_cast<int64_t>(block));
    }
    for (size_t block = num_blocks; block-- > 0;) {
      before_backward(block);
      made_.add(What::backward, static_cast<int64_t>(block));
      after_backward(block);
    }
  }
  reduce();
  made_.add(What::update);
  if (input.norm) sum_squares();
  after_update();
  return std::move(made_);
}

void add_operations(Cost& cost, const Program& program) {
  for (const StartedOperation& operation : program.operations)
    cost.traffic_bytes += operation.bytes * ring_factor(operation.name, operation.ranks);
  cost.num_operations += static_cast<int64_t>(program.operations.size());
}

}  // namespace shardmark::laws
