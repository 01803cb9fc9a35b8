// The memory of a whole model on one rank: single and ddp.
#pragma once

#include "laws/layout.h"
#include "laws/strategy_law.h"

namespace shardmark::laws {

// Of a replica, for each parameter. The copies in the compute type are 0 where that is the master's. Source
// of the split: Micikevicius et al., Mixed Precision Training, ICLR 2018; Rajbhandari et al., SC 2020,
// section 3.1.
struct BytesPerParameter {
  int64_t master, copy;  // weights as the optimizer and as blocks see them
  int64_t main_gradient, gradient;
  int64_t state;  // of the optimizer
  int64_t total() const { return master + copy + main_gradient + gradient + state; }
};
BytesPerParameter bytes_per_parameter(const ElementBytes& bytes, int64_t optimizer_elements);

// That for every parameter. Traffic is none.
Cost replica_cost(const CostInput& input, const std::vector<GroupLayout>& layout);

}  // namespace shardmark::laws
