// auto: one of the other strategies, chosen where it runs (auto_choice.h). Before that it is the candidate
// that needs least memory, so that what is ruled out by it is ruled out for all.
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
