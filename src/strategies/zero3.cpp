// zero3: fully sharded training whose shards are whole tensors. Each tensor belongs to one rank, which
// broadcasts it before it is used, and to which its gradient is reduced. Tensors of fewer than `persistence`
// elements stay gathered through a step. Source: Rajbhandari et al., ZeRO, SC 2020, section 5.3.
#include <algorithm>

#include "strategies/fsdp.h"
#include "strategies/paper.h"

namespace shardmark::strategies::zero3 {
namespace {

ModelTable with_persistent(const StepInput& input) {
  return specs::with_persistent(input.model, input.options.at("persistence").get<int64_t>(),
                                input.all_chunks());
}

Program write(const StepInput& input, const Schedule& schedule) {
  const ModelTable model = with_persistent(input);
  StepBuilder step(
      "zero3", input, schedule, model,
      specs::whole_tensor_layout(model, input.sharded_over(input.ranks), specs::evenness(input.options)));
  ShardedParameters parameters(step, step.allocate_shards("parameters", Use::parameters, Element::master));
  ShardedGradients gradients(step);
  step.updates(parameters.own(), gradients.own());
  return write_step(step, {&parameters, &gradients});
}

// A rank owns 1/N of the parameters on average, but no less than a whole tensor.
Cost paper(const StepInput& input) {
  const ModelTable model = with_persistent(input);
  const Sizes s(input, model);
  Cost cost = sharded_cost(s, std::min(s.ranks, s.parameters / s.largest_tensor), input.options);
  cost.traffic_bytes =
      ring(s.ranks) *
      ((s.roots + gathered_forward(s, input.options) + gathered_backward(s, input.options)) * s.compute +
       s.micro_batches * s.parameters * s.reduce);
  return cost;
}

const OptionTable kOptions = {
    prefetch_option(),
    {"evenness", OptionType::text, "bytes", "what is balanced between ranks", {"bytes", "count"}},
    {"persistence", OptionType::integer, 0, "tensors of fewer elements stay gathered through a step", {}, 0},
    offload_option(),
};

const Registration<Strategy> registered{
    "zero3",
    {"whole tensors assigned to ranks by bytes, broadcast by their owner when used", kOptions, write, paper}};

}  // namespace
}  // namespace shardmark::strategies::zero3
