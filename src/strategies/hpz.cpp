// hpz: fsdp with a second copy of the parameters inside the node (hierarchical partitioning of ZeRO++).
// Forward gathers every group over all ranks. Each rank then keeps 1/G of the gathered group as its secondary
// shard, and backward gathers from the secondary shards of `group` neighbours, so that it sends nothing
// between nodes. This costs up to P/G of memory in the compute type. Gradients and optimizer state are
// sharded over all ranks. Source: Wang et al., ZeRO++, 2023, section 3.2 (hpZ).
#include <algorithm>

#include "strategies/fsdp.h"
#include "strategies/paper.h"

namespace shardmark::strategies::hpz {
namespace {

bool is_unsharded_for_backward(const UnitUse& use) { return use.unshards && use.first != Compute::forward; }

// Only groups that a step gathers again for backward have secondary shards; the others' layouts are empty.
std::vector<GroupLayout> secondary_layout(const StepBuilder& step, int64_t num_slots, int64_t ranks) {
  std::vector<GroupLayout> layout = step.layout();
  for (GroupLayout& place : layout) place.segments.clear();
  for (const UnitUse& use : unit_uses(step.positions_of_step(), num_slots)) {
    if (!is_unsharded_for_backward(use)) continue;
    for (const size_t group : use.groups) {
      layout[group].segments = step.layout()[group].segments;
      layout[group].process_group = step.input().sharded_over(ranks).of(step.input().model.groups[group]);
    }
  }
  return layout;
}

class SecondaryShards : public ShardedParameters {
 public:
  SecondaryShards(StepBuilder& step, ModelShards primary, int64_t ranks)
      : ShardedParameters(step, std::move(primary)),
        secondary_(step.allocate_shards("secondary shards", Use::parameters, Element::compute,
                                        secondary_layout(step, num_slots(), ranks))) {}

  // When a block's units have been gathered for the first time in a step, keeps this rank's secondary shards
  // of them while they still lie in their slot.
  void after(const Position& at) override {
    const auto is_new = [&](size_t unit) {
      return std::count(at.first_used.begin(), at.first_used.end(), unit) > 0;
    };
    const auto is_used_again = [&](const UnitUse& use) {
      return use.block == static_cast<size_t>(at.action.block) && is_unsharded_for_backward(use);
    };
    if (std::any_of(at.units.begin(), at.units.end(), is_new) &&
        std::any_of(uses().begin(), uses().end(), is_used_again))
      for (const size_t unit : at.units)
        step_.copy(secondary_.of[unit], step_.shard_of(secondary_.layout[unit], slot_of(current(), unit)));
    ShardedParameters::after(at);
  }

 private:
  const ModelShards& shards_for(const UnitUse& use) const override {
    return is_unsharded_for_backward(use) ? secondary_ : own();
  }

  ModelShards secondary_;
};

Program write(const StepInput& input, const Schedule& schedule) {
  StepBuilder step("hpz", input, schedule, specs::even_layout(input.model, input.sharded_over(input.ranks)));
  SecondaryShards parameters(step, step.allocate_shards("parameters", Use::parameters, Element::master),
                             group_size(input));
  ShardedGradients gradients(step);
  step.updates(parameters.own(), gradients.own());
  return write_step(step, {&parameters, &gradients});
}

// Backward gathers among `parts` neighbours what forward gathers over all ranks.
Cost paper(const StepInput& input) {
  const Sizes s(input);
  const auto parts = static_cast<double>(group_size(input));
  const double again = gathered_backward(s, input.options);
  Cost cost = sharded_cost(s, s.ranks, input.options);
  cost.parameter_bytes += again / s.micro_batches / parts * s.compute;
  cost.traffic_bytes = ring(s.ranks) * ((s.roots + gathered_forward(s, input.options)) * s.compute +
                                        s.micro_batches * s.parameters * s.reduce) +
                       ring(parts) * again * s.compute;
  return cost;
}

const OptionTable kOptions = {
    prefetch_option(),
    {"group",
     OptionType::integer,
     0,
     "size of the groups that backward gathers within, such as a node; 0: all ranks",
     {},
     0},
    offload_option(),
};

const Registration<Strategy> registered{
    "hpz",
    {"fsdp whose backward gathers within the node, from a second copy (ZeRO++)", kOptions, write, paper,
     group_must_divide}};

}  // namespace
}  // namespace shardmark::strategies::hpz
