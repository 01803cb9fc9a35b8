// fsdp: parameters, gradients and optimizer state cut inside tensors, 1/N of every group on each rank
// (ZeRO-3); or only gradients and optimizer state (ZeRO-2), or only optimizer state (ZeRO-1). Sources:
// Rajbhandari et al., SC 2020, sections 5 and 7; Zhao et al., VLDB 2023.
#include "laws/layout.h"
#include "laws/sharded_cost.h"
#include "laws/sharded_program.h"
#include "laws/step_walk.h"

namespace shardmark::laws {
namespace {

// Memory, as if a group were all there is.
Cost memory_in_group(const CostInput& input) {
  const auto layout = fsdp_layout(input.model, input.ranks, input.options);
  const auto shard = input.options.at("shard").get<std::string>();
  if (shard == "full") return sharded_cost(input, layout);

  const ElementBytes& bytes = input.bytes;
  const auto numel = static_cast<double>(total_numel(layout));
  const auto cut = static_cast<double>(owned_numel(layout, 0));
  const auto of = [](double elements, int64_t each) { return elements * static_cast<double>(each); };
  const bool gradients_cut = shard == "gradients";
  Cost cost;
  cost.parameter_bytes = of(numel, bytes.compute) + (bytes.mixed() ? of(cut, bytes.master) : 0);
  cost.gradient_bytes = gradients_cut
                            ? of(cut, bytes.master)
                            : of(numel, bytes.compute) + (bytes.mixed() ? of(cut, bytes.master) : 0);
  add_optimizer(cost, input, cut);
  cost.transient_bytes = gradients_cut      ? gradient_slot_bytes(input, layout)
                         : bytes.converts() ? of(numel, bytes.reduce)
                                            : 0;
  cost.ideal_bytes = cost.parameter_bytes + cost.gradient_bytes + cost.optimizer_bytes;
  return cost;
}

int64_t group_size(const CostInput& input) {
  const auto group = input.options.at("group").get<int64_t>();
  return group == 0 ? input.ranks : group;
}

// Sharded in groups of G ranks, replicated across R = N/G: after its group's reductions a rank sums its part
// of the gradients with its R peers. Source: Zhao et al., VLDB 2023, section 3.2.2; Zhang et al., MiCS, VLDB
// 2022.
Program program(const CostInput& input) {
  const int64_t group = group_size(input);
  return sharded_program(input, fsdp_layout(input.model, group, input.options), group,
                         hold_of(input.options));
}

Cost cost(const CostInput& input) {
  CostInput in_group = input;
  in_group.ranks = group_size(input);
  Cost cost = memory_in_group(in_group);
  add_operations(cost, program(input));
  return cost;
}

std::string impossible(const CostInput& input) {
  if (input.ranks % group_size(input) == 0) return {};
  return "fsdp: groups of " + std::to_string(group_size(input)) + " do not divide " +
         std::to_string(input.ranks) + " ranks";
}

const OptionTable kOptions = {
    {"shard",
     OptionType::text,
     "full",
     "what is cut: everything, gradients and optimizer state, or optimizer state",
     {"full", "gradients", "optimizer"}},
    {"layout",
     OptionType::text,
     "flat",
     "where cuts fall: anywhere in a block, one operation; or between rows of each tensor, one each",
     {"flat", "dim0"}},
    {"prefetch", OptionType::integer, 1, "blocks gathered ahead (shard: full)", {}, 0, 64},
    {"group",
     OptionType::integer,
     0,
     "ranks that share a copy; the copies are replicas; 0: all ranks",
     {},
     0},
    offload_option(),
};

const Registration<StrategyLaw> registered{
    "fsdp",
    {"cut inside tensors: 1/N of every block on each rank, gathered when used", kOptions, cost, program,
     impossible}};

}  // namespace
}  // namespace shardmark::laws
