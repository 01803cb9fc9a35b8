// The cost that fsdp and zero3 share: parameters gathered into slots group by group, gradients reduced out of
// slots.
#pragma once

#include "laws/layout.h"
#include "laws/strategy_law.h"

namespace shardmark::laws {

inline constexpr int64_t kGradientSlots = 2;  // one is reduced while the other is filled

// Two slots of the largest group, and the root groups' gradients.
double gradient_slot_bytes(const CostInput& input, const std::vector<GroupLayout>& layout);

// Everything cut. Per micro-batch: a gather of every group for forward, one for backward but for those kept
// from forward (root groups, the last group), and a reduction of every group: (3M - M_kept)(N-1)/N.
Cost sharded_cost(const CostInput& input, const std::vector<GroupLayout>& layout);

}  // namespace shardmark::laws
