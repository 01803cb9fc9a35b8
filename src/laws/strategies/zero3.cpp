// zero3: whole tensors belong to ranks; their owner broadcasts them before use and gets their gradients
// reduced to it.
#include "laws/layout.h"
#include "laws/sharded_cost.h"
#include "laws/sharded_program.h"
#include "laws/step_walk.h"

namespace shardmark::laws {
namespace {

// Calls visit(input, layout) for the model with its small tensors in a root group.
template <class Visit>
auto with_layout(const CostInput& input, Visit&& visit) {
  const ModelTable model = with_persistent(input.model, input.options.at("persistence").get<int64_t>());
  const CostInput regrouped{
      model,         input.ranks, input.accumulation, input.bytes, input.optimizer_elements,
      input.options, input.norm};
  return visit(regrouped, whole_tensor_layout(model, input.ranks, evenness(input.options)));
}

Program program(const CostInput& input) {
  return with_layout(input, [](const CostInput& regrouped, const std::vector<GroupLayout>& layout) {
    return sharded_program(regrouped, layout, regrouped.ranks, {});
  });
}

Cost cost(const CostInput& input) {
  Cost cost = with_layout(input, sharded_cost);
  add_operations(cost, program(input));
  return cost;
}

const OptionTable kOptions = {
    {"prefetch", OptionType::integer, 1, "blocks gathered ahead", {}, 0, 64},
    {"evenness", OptionType::text, "bytes", "what ranks own equally much of", {"bytes", "count"}},
    {"persistence", OptionType::integer, 0, "tensors of fewer elements stay gathered through a step", {}, 0},
    offload_option(),
};

const Registration<StrategyLaw> registered{
    "zero3",
    {"whole tensors dealt to ranks by bytes, broadcast by their owner when used", kOptions, cost, program}};

}  // namespace
}  // namespace shardmark::laws
