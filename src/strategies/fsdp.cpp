// fsdp: every group of parameters is cut inside its tensors into equal shards, one a rank. What a rank holds
// in shards is `shard`: parameters, gradients and optimizer state (full, ZeRO-3), gradients and optimizer
// state (gradients, ZeRO-2), or optimizer state alone (optimizer, ZeRO-1). Before a block computes, its
// parameters are gathered from all shards (unshard); after its backward its gradients are summed, each rank
// getting the sum for its own shard (reduce-scatter). With `group: G` the shards span G neighbours; ranks
// that own the same shard in different groups are replicas, which sum their gradients by an all-reduce.
// Sources: Rajbhandari et al., ZeRO, SC 2020, sections 5 and 7; Zhao et al., PyTorch FSDP, VLDB 2023, section
// 3; Zhang et al., MiCS, VLDB 2022.
#include "strategies/sharded_step.h"

namespace shardmark::strategies {
namespace {

Program write(const StepInput& input, bool trains) {
  StepBuilder step("fsdp", input, specs::fsdp_layout(input.model, group_size(input), input.options));
  const auto shard = input.options.at("shard").get<std::string>();
  if (shard == "full") {
    Shards parameters = step.allocate_shards("parameters", Use::parameters, Element::master);
    ParameterSlots slots(step, std::move(parameters), trains);
    return sharded_step(step, std::move(slots), GradientSlots(step), trains);
  }
  WholeParameters parameters(step);
  if (shard == "gradients") return sharded_step(step, std::move(parameters), GradientSlots(step), trains);
  return sharded_step(step, std::move(parameters), WholeGradients(step), trains);
}

const OptionTable kOptions = {
    {"shard",
     OptionType::text,
     "full",
     "what is sharded: everything, gradients and optimizer state, or optimizer state",
     {"full", "gradients", "optimizer"}},
    {"layout",
     OptionType::text,
     "flat",
     "where shards begin: anywhere in a block, one operation; or at rows of each tensor, one operation each",
     {"flat", "dim0"}},
    {"prefetch", OptionType::integer, 1, "blocks prefetched (shard: full)", {}, 0, 64},
    {"group", OptionType::integer, 0, "ranks that shard one replica, as in HSDP; 0: all ranks", {}, 0},
    offload_option(),
};

const Registration<Strategy> registered{
    "fsdp",
    {"sharded within tensors: 1/N of every block on each rank, gathered when used", kOptions, write,
     group_must_divide}};

}  // namespace
}  // namespace shardmark::strategies
