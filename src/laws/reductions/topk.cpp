// topk: the largest elements of each bucket, as values and 32-bit indices; the rest waits for the next step.
// Sources: Aji and Heafield, EMNLP 2017; Stich et al., NeurIPS 2018 (error feedback).
#include <algorithm>

#include "laws/compressed.h"
#include "laws/reduction_law.h"

namespace shardmark::laws {
namespace {

constexpr int64_t kIndexBytes = 4;      // on the way
constexpr int64_t kWideIndexBytes = 8;  // as ATen selects

ReductionCost cost(const ReductionInput& input) {
  const auto ratio = input.options.at("ratio").get<double>();
  int64_t selected = 0, most_selected = 0, largest = 0;
  for (const Bucket& bucket : input.buckets) {
    const int64_t k = num_selected(bucket.numel, ratio);
    selected += k;
    most_selected = std::max(most_selected, k);
    largest = std::max(largest, bucket.numel);
  }
  const int64_t gathered = input.ranks * selected * (input.element_bytes + kIndexBytes);
  const int64_t scratch =
      largest * input.element_bytes + most_selected * (input.element_bytes + kWideIndexBytes);
  return {
      .residual_bytes = static_cast<double>(total_numel(input.layout) * input.element_bytes),
      .transient_bytes = static_cast<double>(gathered + scratch),
      .value_bytes = static_cast<double>(selected * input.element_bytes),
  };
}

std::vector<BucketOperation> operations(const ReductionInput& input, const Bucket& bucket) {
  const int64_t selected = num_selected(bucket.numel, input.options.at("ratio").get<double>());
  return {{"all_gather", input.ranks * selected * (input.element_bytes + kIndexBytes)}};
}

const OptionTable kOptions = {
    {"ratio", OptionType::number, 0.01, "part of a bucket's elements that a rank sends", {}, 1e-6, 1}};

const Registration<ReductionLaw> registered{
    "topk", {"largest elements all-gathered, the rest kept for the next step", kOptions, cost, operations}};

}  // namespace
}  // namespace shardmark::laws
