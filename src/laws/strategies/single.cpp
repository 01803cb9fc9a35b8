// single: every rank trains a replica of its own; nothing moves. The base of overhead ratios.
#include "laws/layout.h"
#include "laws/replica_cost.h"
#include "laws/strategy_law.h"

namespace shardmark::laws {
namespace {

Cost cost(const CostInput& input) { return replica_cost(input, even_layout(input.model, 1)); }

const Registration<StrategyLaw> registered{
    "single", {"independent replicas, one per rank; the base of ratios", {}, cost}};

}  // namespace
}  // namespace shardmark::laws
