// zero3: whole tensors belong to ranks; their owner broadcasts them before use and gets their gradients
// reduced to it.
#include "laws/layout.h"
#include "laws/sharded_cost.h"

namespace shardmark::laws {
namespace {

Cost cost(const CostInput& input) {
  return sharded_cost(input, whole_tensor_layout(input.model, input.ranks, evenness(input.options)));
}

const OptionTable kOptions = {
    {"prefetch", OptionType::integer, 1, "blocks gathered ahead", {}, 0, 64},
    {"evenness", OptionType::text, "bytes", "what ranks own equally much of", {"bytes", "count"}},
};

const Registration<StrategyLaw> registered{
    "zero3", {"whole tensors dealt to ranks by bytes, broadcast by their owner when used", kOptions, cost}};

}  // namespace
}  // namespace shardmark::laws
