// auto: becomes ddp or a form of fsdp, which is decided where it runs (auto_choice.h). Until then, it is
// treated as the candidate that needs the least memory, so that a plan rules it out only if all candidates
// are ruled out.
#include "strategies/auto_choice.h"

namespace shardmark::strategies {
namespace {

std::pair<const Strategy&, StepInput> chosen(const StepInput& input) {
  const Choice choice = decide(input, {.memory_bytes = 1}).choice().strategy;
  StepInput as_chosen = input;
  as_chosen.options = choice.options;
  return {strategy(choice.name), as_chosen};
}

Program write(const StepInput& input, const Schedule& schedule) {
  const auto [strategy, as_chosen] = chosen(input);
  return strategy.write(as_chosen, schedule);
}

Cost paper(const StepInput& input) {
  const auto [strategy, as_chosen] = chosen(input);
  return strategy.paper(as_chosen);
}

const Registration<Strategy> registered{
    "auto", {"ddp or a form of fsdp, by memory and measured bandwidth", {}, write, paper}};

}  // namespace
}  // namespace shardmark::strategies
