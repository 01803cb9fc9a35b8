// The cost that fsdp and zero3 share: parameters gathered into slots group by group, gradients reduced out of
// slots.
#pragma once

#include "laws/layout.h"
#include "laws/strategy_law.h"

namespace shardmark::laws {

inline constexpr int64_t kGradientSlots = 2;  // one is reduced while the other is filled

// Two slots of the largest group, and the root groups' gradients.
double gradient_slot_bytes(const CostInput& input, const std::vector<GroupLayout>& layout);

// What of a sharded strategy lives in host memory: nothing, or the optimizer's state, beside which the host
// then keeps copies of the parameters and gradients that a rank owns. Source: Ren et al., ZeRO-Offload, ATC
// 2021.
OptionSpec offload_option();
inline bool offloads(const Options& options) { return options.at("offload") == "optimizer"; }

// Writes optimizer_bytes, or offloaded_bytes, of a rank that updates so many parameters.
void add_optimizer(Cost& cost, const CostInput& input, double parameters);

// The memory where everything is cut.
Cost sharded_cost(const CostInput& input, const std::vector<GroupLayout>& layout);

}  // namespace shardmark::laws
