// hpz: the fully sharded step with a second copy of the parameters inside the node: forward gathers every
// group over all ranks, and each rank keeps 1/G of what was gathered, its secondary shard; backward gathers
// from these within `group` neighbours, so that nothing leaves the node for it. It costs up to P/G of memory
// in the compute type. Gradients and optimizer state stay in shards over all ranks. Source: Wang et al.,
// ZeRO++, 2023, section 3.2 (hpZ).
#include "strategies/sharded_step.h"

namespace shardmark::strategies {
namespace {

// Of the groups that backward gathers again: all units but the last. Others have no secondary shards.
std::vector<GroupLayout> secondary_layout(const StepBuilder& step, int64_t ranks) {
  std::vector<GroupLayout> layout = step.layout();
  for (GroupLayout& place : layout) place.segments.clear();
  for (size_t unit = 0; unit + 1 < step.schedule().units.size(); ++unit) {
    const size_t group = step.group_of_unit(static_cast<int64_t>(unit));
    layout[group].segments = step.layout()[group].segments;
    layout[group].ranks = ranks;
  }
  return layout;
}

class SecondaryShards {
 public:
  SecondaryShards(StepBuilder& step, Shards primary, int64_t group, bool trains)
      : step_(step),
        secondary_(step.allocate_shards("secondary shards", Use::parameters, Element::compute,
                                        secondary_layout(step, group))),
        slots_(step, std::move(primary), trains, secondary_) {}

  const Shards& own() const { return slots_.own(); }
  void begin_micro_batch(int64_t index) { slots_.begin_micro_batch(index); }
  void before_forward(int64_t block) { slots_.before_forward(block); }
  void after_forward(int64_t block) {
    if (!slots_.is_gathered_again(block)) return;
    const size_t group = step_.group_of_unit(step_.unit_of(block));
    step_.copy(secondary_.of[group], step_.shard_of(secondary_.layout[group], slots_.forward_slot(block)));
  }
  void before_backward(int64_t block) { slots_.before_backward(block); }
  void after_update() {}

 private:
  StepBuilder& step_;
  Shards secondary_;
  ParameterSlots slots_;
};

Program write(const StepInput& input, bool trains) {
  StepBuilder step("hpz", input, specs::even_layout(input.model, input.ranks));
  Shards primary = step.allocate_shards("parameters", Use::parameters, Element::master);
  SecondaryShards parameters(step, std::move(primary), group_size(input), trains);
  return sharded_step(step, std::move(parameters), GradientSlots(step), trains);
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
    {"fsdp whose backward gathers within the node, from a second copy (ZeRO++)", kOptions, write,
     group_must_divide}};

}  // namespace
}  // namespace shardmark::strategies
