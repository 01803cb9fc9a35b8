// single: every rank trains a replica of its own; nothing moves. The base of overhead ratios.
#include "laws/layout.h"
#include "laws/replica_cost.h"
#include "laws/step_walk.h"
#include "laws/strategy_law.h"

namespace shardmark::laws {
namespace {

Cost cost(const CostInput& input) { return replica_cost(input, even_layout(input.model, 1)); }

class SingleWalk final : public StepWalk {
  void begin_micro_batch(bool) override {}
  void before_forward(size_t) override {}
  void before_backward(size_t) override {}
  void after_backward(size_t) override {}
  void reduce() override {}
  void sum_squares() override {}
  void after_update() override {}
};

Program program(const CostInput& input) { return SingleWalk().program(input); }

const Registration<StrategyLaw> registered{
    "single", {"independent replicas, one per rank; the base of ratios", {}, cost, program}};

}  // namespace
}  // namespace shardmark::laws
