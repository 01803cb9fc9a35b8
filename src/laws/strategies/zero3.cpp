// zero3: whole tensors belong to ranks; their owner broadcasts them before use and gets their gradients
// reduced to it.
#include "laws/layout.h"
#include "laws/sharded_cost.h"

namespace shardmark::laws {
namespace {

Cost cost(const CostInput& input) {
  const ModelTable model = with_persistent(input.model, input.options.at("persistence").get<int64_t>());
  return sharded_cost(
      {model, input.ranks, input.accumulation, input.bytes, input.optimizer_elements, input.options},
      whole_tensor_layout(model, input.ranks, evenness(input.options)));
}

const OptionTable kOptions = {
    {"prefetch", OptionType::integer, 1, "blocks gathered ahead", {}, 0, 64},
    {"evenness", OptionType::text, "bytes", "what ranks own equally much of", {"bytes", "count"}},
    {"persistence", OptionType::integer, 0, "tensors of fewer elements stay gathered through a step", {}, 0},
    offload_option(),
};

const Registration<StrategyLaw> registered{
    "zero3", {"whole tensors dealt to ranks by bytes, broadcast by their owner when used", kOptions, cost}};

}  // namespace
}  // namespace shardmark::laws
