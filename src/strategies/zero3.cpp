// zero3: the fully sharded step over whole tensors: each belongs to one rank, which broadcasts it before use
// and gets its gradient reduced to it. Tensors of fewer than `persistence` elements stay gathered through a
// step. Source: Rajbhandari et al., ZeRO, SC 2020, section 5.3.
#include "strategies/fsdp.h"

namespace shardmark::strategies {
namespace {

Program write(const StepInput& input, const Schedule& schedule) {
  const ModelTable model =
      specs::with_persistent(input.model, input.options.at("persistence").get<int64_t>());
  StepBuilder step("zero3", input, schedule, model,
                   specs::whole_tensor_layout(model, input.ranks, specs::evenness(input.options)));
  ShardedParameters parameters(step, step.allocate_shards("parameters", Use::parameters, Element::master));
  ShardedGradients gradients(step);
  step.updates(parameters.own(), gradients.own());
  return write_step(step, {&parameters, &gradients});
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
