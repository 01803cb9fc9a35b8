// plain: one all-reduce per bucket.
#include "laws/reduction_law.h"

namespace shardmark::laws {
namespace {

ReductionCost cost(const ReductionInput& input) {
  const auto bytes = static_cast<double>(total_numel(input.layout) * input.element_bytes);
  return {.traffic_bytes = bytes * ring_factor("all_reduce", input.ranks),
          .num_operations = static_cast<int64_t>(input.buckets.size()),
          .value_bytes = bytes};
}

const Registration<ReductionLaw> registered{"plain", {"all-reduced as they are", {}, cost}};

}  // namespace
}  // namespace shardmark::laws
