// int8: elements as whole numbers from -127 to 127 times a scale per block, exchanged twice: every rank sums
// its part of the bucket, then all gather the sums. Sources: Alistarh et al. (QSGD), NeurIPS 2017, for scales
// per block; Wang et al. (ZeRO++), 2023, for the all-to-all instead of a reduction.
#include <algorithm>

#include "laws/compressed.h"
#include "laws/reduction_law.h"

namespace shardmark::laws {
namespace {

constexpr int64_t kScratchBytes = 8;  // per element of the largest part: two copies in fp32

ReductionCost cost(const ReductionInput& input) {
  int64_t bytes = 0, largest = 0;
  for (const Bucket& bucket : input.buckets) {
    const QuantisedParts parts = quantised_parts(bucket.numel, input.ranks);
    bytes += input.ranks * parts.bytes;
    largest = std::max(largest, parts.numel);
  }
  return {
      .transient_bytes = static_cast<double>(2 * bytes + largest * kScratchBytes),
      .value_bytes = static_cast<double>(total_numel(input.layout)),
  };
}

std::vector<BucketOperation> operations(const ReductionInput& input, const Bucket& bucket) {
  const int64_t bytes = input.ranks * quantised_parts(bucket.numel, input.ranks).bytes;
  return {{"all_to_all", bytes}, {"all_gather", bytes}};
}

const Registration<ReductionLaw> registered{"int8",
                                            {"8-bit numbers with a scale per block, exchanged twice",
                                             {},
                                             cost,
                                             operations,
                                             /*most_element_bytes=*/4}};

}  // namespace
}  // namespace shardmark::laws
