// fsdp: parameters, gradients and optimizer state cut inside tensors, 1/N of every group on each rank
// (ZeRO-3); or only gradients and optimizer state (ZeRO-2), or only optimizer state (ZeRO-1). Sources:
// Rajbhandari et al., SC 2020, sections 5 and 7; Zhao et al., VLDB 2023.
#include "laws/layout.h"
#include "laws/sharded_cost.h"

namespace shardmark::laws {
namespace {

Cost cost(const CostInput& input) {
  const auto layout = even_layout(input.model, input.ranks);
  const auto shard = input.options.at("shard").get<std::string>();
  if (shard == "full") return sharded_cost(input, layout);

  const ElementBytes& bytes = input.bytes;
  const auto numel = static_cast<double>(total_numel(layout));
  const double cut = numel / static_cast<double>(input.ranks);
  const auto of = [](double elements, int64_t each) { return elements * static_cast<double>(each); };
  const bool gradients_cut = shard == "gradients";
  const int64_t reductions =
      gradients_cut ? input.accumulation : 1;  // cut gradients cannot wait: each micro-batch reduces
  Cost cost;
  cost.parameter_bytes = of(numel, bytes.compute) + (bytes.mixed() ? of(cut, bytes.master) : 0);
  cost.gradient_bytes = gradients_cut
                            ? of(cut, bytes.master)
                            : of(numel, bytes.compute) + (bytes.mixed() ? of(cut, bytes.master) : 0);
  cost.optimizer_bytes = of(cut, bytes.master * input.optimizer_elements);
  cost.transient_bytes = gradients_cut      ? gradient_slot_bytes(input, layout)
                         : bytes.converts() ? of(numel, bytes.reduce)
                                            : 0;
  cost.ideal_bytes = cost.parameter_bytes + cost.gradient_bytes + cost.optimizer_bytes;
  cost.traffic_bytes =
      of(numel, bytes.reduce) * static_cast<double>(reductions) * ring_factor("reduce_scatter", input.ranks) +
      of(numel, bytes.compute) * ring_factor("all_gather", input.ranks);
  cost.num_operations = (reductions + 1) * static_cast<int64_t>(layout.size());
  return cost;
}

const OptionTable kOptions = {
    {"shard",
     OptionType::text,
     "full",
     "what is cut: everything, gradients and optimizer state, or optimizer state",
     {"full", "gradients", "optimizer"}},
    {"prefetch", OptionType::integer, 1, "blocks gathered ahead (shard: full)", {}, 0, 64},
};

const Registration<StrategyLaw> registered{
    "fsdp", {"cut inside tensors: 1/N of every block on each rank, gathered when used", kOptions, cost}};

}  // namespace
}  // namespace shardmark::laws
