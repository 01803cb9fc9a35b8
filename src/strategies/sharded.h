// A sharded strategy: a parameter side, a gradient side and an optimizer over the parts that this rank owns.
#pragma once

#include "laws/sharded_program.h"
#include "strategies/sides.h"
#include "strategies/strategy.h"

namespace shardmark {

struct ShardedOptions {
  std::vector<laws::GroupLayout> layout;  // over the ranks of a group
  int64_t group;  // consecutive ranks that share one copy of the model; it divides the ranks
  laws::ShardedHold hold;
  int64_t prefetch = 0;  // blocks gathered ahead; of parameters held in parts
  bool offload = false;  // the optimizer's state to host memory
};

std::unique_ptr<Strategy> make_sharded(const StrategyContext& context, ShardedOptions options);

}  // namespace shardmark
