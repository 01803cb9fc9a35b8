// powersgd: each matrix of gradients as the product of two narrow ones, found by one step of subspace
// iteration; the rest waits for the next step. Source: Vogels et al., NeurIPS 2019, algorithms 1 and 2.
#include "laws/compressed.h"
#include "laws/reduction_law.h"

namespace shardmark::laws {
namespace {

ReductionCost cost(const ReductionInput& input) {
  int64_t left = 0, right = 0;
  for (const Bucket& bucket : input.buckets) {
    const auto factors = low_rank(input.model, input.layout, bucket, input.options.at("rank").get<int64_t>());
    left += factors.left_numel;
    right += factors.right_numel;
  }
  const auto bytes = [&](int64_t numel) { return static_cast<double>(numel * input.element_bytes); };
  return {
      // The right factors stay: the next step starts from them.
      .residual_bytes = bytes(total_numel(input.layout) + right),
      .transient_bytes = bytes(left),
      .value_bytes = bytes(left + right),
  };
}

std::vector<BucketOperation> operations(const ReductionInput& input, const Bucket& bucket) {
  const auto factors = low_rank(input.model, input.layout, bucket, input.options.at("rank").get<int64_t>());
  std::vector<BucketOperation> two = {{"all_reduce", factors.left_numel * input.element_bytes}};
  if (factors.right_numel > 0) two.push_back({"all_reduce", factors.right_numel * input.element_bytes});
  return two;
}

const OptionTable kOptions = {{"rank", OptionType::integer, 2, "columns of each factor", {}, 1, 1024}};

const Registration<ReductionLaw> registered{
    "powersgd",
    {"matrices as products of two narrow ones, the rest kept for the next step", kOptions, cost, operations}};

}  // namespace
}  // namespace shardmark::laws
