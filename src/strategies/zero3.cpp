// zero3: the fully sharded step over whole tensors: each belongs to one rank, which broadcasts it before use
// and gets its gradient reduced to it. Tensors of fewer than `persistence` elements stay gathered through a
// step. Source: Rajbhandari et al., ZeRO, SC 2020, section 5.3.
#include "strategies/sharded_step.h"

namespace shardmark::strategies {
namespace {

Program write(const StepInput& input, bool trains) {
  const ModelTable model =
      specs::with_persistent(input.model, input.options.at("persistence").get<int64_t>());
  StepBuilder step("zero3", input, model,
                   specs::whole_tensor_layout(model, input.ranks, specs::evenness(input.options)));
  Shards parameters = step.allocate_shards("parameters", Use::parameters, Element::master);
  ParameterSlots slots(step, std::move(parameters), trains);
  return sharded_step(step, std::move(slots), GradientSlots(step), trains);
}

const OptionTable kOptions = {
    prefetch_option(),
    {"evenness", OptionType::text, "bytes", "what is balanced between ranks", {"bytes", "count"}},
    {"persistence", OptionType::integer, 0, "tensors of fewer elements stay gathered through a step", {}, 0},
    offload_option(),
};

const Registration<Strategy> registered{
    "zero3",
    {"whole tensors assigned to ranks by bytes, broadcast by their owner when used", kOptions, write}};

}  // namespace
}  // namespace shardmark::strategies
