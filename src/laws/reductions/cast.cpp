// cast: all-reduced in a 16-bit type; half the bytes of fp32.
#include "laws/reduction_law.h"

namespace shardmark::laws {
namespace {

constexpr int64_t kBytes = 2;  // of an element, of either type

ReductionCost cost(const ReductionInput& input) {
  const auto bytes = static_cast<double>(total_numel(input.layout) * kBytes);
  return {.transient_bytes = bytes, .value_bytes = bytes};
}

std::vector<BucketOperation> operations(const ReductionInput&, const Bucket& bucket) {
  return {{"all_reduce", bucket.numel * kBytes}};
}

const OptionTable kOptions = {{"to", OptionType::text, "bf16", "type on the way", {"bf16", "fp16"}}};

const Registration<ReductionLaw> registered{"cast",
                                            {"all-reduced in a 16-bit type", kOptions, cost, operations}};

}  // namespace
}  // namespace shardmark::laws
