// auto: one of the other strategies, chosen where it runs (auto_choice.h). Before that its cost is the least
// that any candidate needs, so that what is ruled out by it is ruled out for all.
#include "laws/auto_choice.h"

namespace shardmark::laws {
namespace {

Cost cost(const CostInput& input) { return decide(input, {.memory_bytes = 1}).choice().cost; }

Program program(const CostInput& input) {
  const Choice chosen = decide(input, {.memory_bytes = 1}).choice().strategy;
  CostInput as_chosen = input;
  as_chosen.options = chosen.options;
  return strategy_law(chosen.name).program(as_chosen);
}

const Registration<StrategyLaw> registered{
    "auto", {"ddp or a form of fsdp, by memory and measured bandwidth", {}, cost, program}};

}  // namespace
}  // namespace shardmark::laws
