// See replica_cost.h for the sums.
#include "laws/replica_cost.h"

namespace shardmark::laws {

BytesPerParameter bytes_per_parameter(const ElementBytes& bytes, int64_t optimizer_elements) {
  const int64_t copy = bytes.mixed() ? bytes.compute : 0;
  return {bytes.master, copy, bytes.master, copy, bytes.master * optimizer_elements};
}

Cost replica_cost(const CostInput& input, const std::vector<GroupLayout>& layout) {
  const auto numel = static_cast<double>(total_numel(layout));
  const BytesPerParameter each = bytes_per_parameter(input.bytes, input.optimizer_elements);
  Cost cost;
  cost.parameter_bytes = numel * static_cast<double>(each.master + each.copy);
  cost.gradient_bytes = numel * static_cast<double>(each.main_gradient + each.gradient);
  cost.optimizer_bytes = numel * static_cast<double>(each.state);
  cost.ideal_bytes = cost.parameter_bytes + cost.gradient_bytes + cost.optimizer_bytes;
  return cost;
}

}  // namespace shardmark::laws
