// plain: one all-reduce per bucket.
#include "laws/reduction_law.h"

namespace shardmark::laws {
namespace {

ReductionCost cost(const ReductionInput& input) {
  const auto bytes = static_cast<double>(total_numel(input.layout) * input.element_bytes);
  return {.value_bytes = bytes};
}

std::vector<BucketOperation> operations(const ReductionInput& input, const Bucket& bucket) {
  return {{"all_reduce", bucket.numel * input.element_bytes}};
}

const Registration<ReductionLaw> registered{"plain", {"all-reduced as they are", {}, cost, operations}};

}  // namespace
}  // namespace shardmark::laws
