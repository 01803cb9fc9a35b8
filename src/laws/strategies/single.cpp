// single: every rank trains a replica of its own; nothing moves. The base of overhead ratios.
#include "laws/layout.h"
#include "laws/strategy_law.h"

namespace shardmark::laws {
namespace {

Cost cost(const CostInput& input) {
  const double bytes = static_cast<double>(total_numel(even_layout(input.model, 1)) * input.element_bytes);
  Cost cost;
  cost.parameter_bytes = cost.gradient_bytes = bytes;
  cost.optimizer_bytes = bytes * static_cast<double>(input.optimizer_elements);
  cost.ideal_bytes = cost.parameter_bytes + cost.gradient_bytes + cost.optimizer_bytes;
  return cost;
}

const Registration<StrategyLaw> registered{
    "single", {"independent replicas, one per rank; the base of ratios", {}, cost}};

}  // namespace
}  // namespace shardmark::laws
