// cast: all-reduced in a 16-bit type; half the bytes of fp32.
#include "laws/reduction_law.h"

namespace shardmark::laws {
namespace {

constexpr int64_t kBytes = 2;  // of an element, of either type

ReductionCost cost(const ReductionInput& input) {
  const auto bytes = static_cast<double>(total_numel(input.layout) * kBytes);
  return {.transient_bytes = bytes,
          .traffic_bytes = bytes * ring_factor("all_reduce", input.ranks),
          .num_operations = static_cast<int64_t>(input.buckets.size()),
          .value_bytes = bytes};
}

const OptionTable kOptions = {{"to", OptionType::text, "bf16", "type on the way", {"bf16", "fp16"}}};

const Registration<ReductionLaw> registered{"cast", {"all-reduced in a 16-bit type", kOptions, cost}};

}  // namespace
}  // namespace shardmark::laws
