// auto: one of the other strategies, chosen where it runs (auto_choice.h). Before that it is the candidate
// that needs least memory, so that what is ruled out by it is ruled out for all.
#include "strategies/auto_choice.h"

namespace shardmark::strategies {
namespace {

Program write(const StepInput& input, const Schedule& schedule) {
  const Choice chosen = decide(input, {.memory_bytes = 1}).choice().strategy;
  StepInput as_chosen = input;
  as_chosen.options = chosen.options;
  return strategy(chosen.name).write(as_chosen, schedule);
}

const Registration<Strategy> registered{
    "auto", {"ddp or a form of fsdp, by memory and measured bandwidth", {}, write}};

}  // namespace
}  // namespace shardmark::strategies
