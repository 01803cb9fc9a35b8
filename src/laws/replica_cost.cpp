// See replica_cost.h for the sums.
#include "laws/replica_cost.h"

namespace shardmark::laws {

Cost replica_cost(const CostInput& input, const std::vector<GroupLayout>& layout) {
  const auto numel = static_cast<double>(total_numel(layout));
  const int64_t each = input.bytes.master + (input.bytes.mixed() ? input.bytes.compute : 0);
  Cost cost;
  cost.parameter_bytes = cost.gradient_bytes = numel * static_cast<double>(each);
  cost.optimizer_bytes = numel * static_cast<double>(input.bytes.master * input.optimizer_elements);
  cost.ideal_bytes = cost.parameter_bytes + cost.gradient_bytes + cost.optimizer_bytes;
  return cost;
}

}  // namespace shardmark::laws
