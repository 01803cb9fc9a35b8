// What a step of a sharded strategy starts and waits for: the sums of strategies/sharded.cpp and its sides,
// which tests compare with this, operation by operation.
#pragma once

#include "laws/layout.h"
#include "laws/program.h"
#include "laws/strategy_law.h"

namespace shardmark::laws {

enum class Hold { whole, part };  // what a rank keeps of each group between uses

struct ShardedHold {
  Hold parameters = Hold::part;
  Hold gradients = Hold::part;
};

// fsdp's option `shard`.
ShardedHold hold_of(const Options& fsdp_options);

// input.model: with the groups that move. layout: over the ranks of a group of `group` ranks, which divides
// input.ranks. input.options: of fsdp or zero3. As rank 0 does it.
Program sharded_program(const CostInput& input, const std::vector<GroupLayout>& layout, int64_t group,
                        ShardedHold hold);

}  // namespace shardmark::laws
