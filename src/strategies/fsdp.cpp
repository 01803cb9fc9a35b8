// fsdp: every group cut inside its tensors into equal parts. What a rank holds in parts is `shard`:
// everything (ZeRO-3), gradients and optimizer state (ZeRO-2), or optimizer state alone (ZeRO-1).
#include "laws/sharded_cost.h"
#include "strategies/sharded.h"

namespace shardmark {
namespace {

std::unique_ptr<Strategy> make(const StrategyContext& context) {
  const auto group = context.options.at("group").get<int64_t>();
  const int64_t ranks = group == 0 ? context.comm.size() : group;
  return make_sharded(context, {.layout = laws::fsdp_layout(context.model.table(), ranks, context.options),
                                .group = ranks,
                                .hold = laws::hold_of(context.options),
                                .prefetch = context.options.at("prefetch").get<int64_t>(),
                                .offload = laws::offloads(context.options)});
}

const Registration<StrategyEntry> registered{"fsdp", {"cut inside tensors, gathered block by block", make}};

}  // namespace
}  // namespace shardmark
