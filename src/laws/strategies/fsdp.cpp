// fsdp: parameters, gradients and optimizer state cut inside tensors, 1/N of every group on each rank
// (ZeRO-3); or only gradients and optimizer state (ZeRO-2), or only optimizer state (ZeRO-1). Sources:
// Rajbhandari et al., SC 2020, sections 5 and 7; Zhao et al., VLDB 2023.
#include "laws/layout.h"
#include "laws/sharded_cost.h"

namespace shardmark::laws {
namespace {

// As if a group were all there is.
Cost cost_in_group(const CostInput& input) {
  const auto layout = fsdp_layout(input.model, input.ranks, input.options);
  const auto shard = input.options.at("shard").get<std::string>();
  if (shard == "full") return sharded_cost(input, layout);

  const ElementBytes& bytes = input.bytes;
  const auto numel = static_cast<double>(total_numel(layout));
  const auto cut = static_cast<double>(owned_numel(layout, 0));
  double moved = 0;
  int64_t pieces = 0;
  for (const auto& place : layout) {
    moved += static_cast<double>(moved_numel(place));
    pieces += static_cast<int64_t>(place.pieces.size());
  }
  const auto of = [](double elements, int64_t each) { return elements * static_cast<double>(each); };
  const bool gradients_cut = shard == "gradients";
  const int64_t reductions =
      gradients_cut ? input.accumulation : 1;  // cut gradients cannot wait: each micro-batch reduces
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
  cost.traffic_bytes =
      of(moved, bytes.reduce) * static_cast<double>(reductions) * ring_factor("reduce_scatter", input.ranks) +
      of(moved, bytes.compute) * ring_factor("all_gather", input.ranks);
  cost.num_operations = (reductions + 1) * pieces;
  return cost;
}

int64_t group_size(const CostInput& input) {
  const auto group = input.options.at("group").get<int64_t>();
  return group == 0 ? input.ranks : group;
}

// Sharded in groups of G ranks, replicated across R = N/G: after its group's reductions a rank sums its part
// of the gradients with its R peers. Source: Zhao et al., VLDB 2023, section 3.2.2; Zhang et al., MiCS, VLDB
// 2022.
Cost cost(const CostInput& input) {
  CostInput in_group = input;
  in_group.ranks = group_size(input);
  const int64_t replicas = input.ranks / in_group.ranks;
  Cost cost = cost_in_group(in_group);
  if (replicas == 1) return cost;
  const auto layout = fsdp_layout(input.model, in_group.ranks, input.options);
  cost.traffic_bytes +=
      static_cast<double>(owned_numel(layout, 0) * input.bytes.master) * ring_factor("all_reduce", replicas);
  for (const auto& place : layout) cost.num_operations += static_cast<int64_t>(place.pieces.size());
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
    {"cut inside tensors: 1/N of every block on each rank, gathered when used", kOptions, cost, impossible}};

}  // namespace
}  // namespace shardmark::laws
