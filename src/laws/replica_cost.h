// The memory of a whole model on one rank: single and ddp.
#pragma once

#include "laws/layout.h"
#include "laws/strategy_law.h"

namespace shardmark::laws {

// Bytes per parameter, with AdamW: fp32 4 + 4 + 8; bf16 (4 + 2) + (4 + 2) + 8, master and copy, main gradient
// and gradient, moments. Traffic is none.
Cost replica_cost(const CostInput& input, const std::vector<GroupLayout>& layout);

}  // namespace shardmark::laws
