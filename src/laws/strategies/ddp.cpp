// ddp: replicas that average their gradients with one all-reduce per bucket, 2(N-1)/N M bytes a rank.
#include "laws/layout.h"
#include "laws/strategy_law.h"

namespace shardmark::laws {
namespace {

Cost cost(const CostInput& input) {
  const auto layout = even_layout(input.model, 1);
  const double bytes = static_cast<double>(total_numel(layout) * input.element_bytes);
  const auto elements = [&](const char* option) {
    return static_cast<int64_t>(input.options.at(option).get<double>() * 1e6) / input.element_bytes;
  };
  Cost cost;
  cost.parameter_bytes = cost.gradient_bytes = bytes;
  cost.optimizer_bytes = bytes * static_cast<double>(input.optimizer_elements);
  cost.traffic_bytes = bytes * ring_factor("all_reduce", input.ranks);
  cost.num_operations = static_cast<int64_t>(
      buckets(input.model, layout, elements("first_bucket_mb"), elements("bucket_mb")).size());
  cost.ideal_bytes = cost.parameter_bytes + cost.gradient_bytes + cost.optimizer_bytes;
  return cost;
}

const OptionTable kOptions = {
    {"bucket_mb", OptionType::number, 25, "bucket size in MB (1e6 bytes)", {}, 1e-3, 1e6},
    {"first_bucket_mb",
     OptionType::number,
     1,
     "size of the first bucket in MB: communication starts early",
     {},
     1e-3,
     1e6},
};

const Registration<StrategyLaw> registered{
    "ddp", {"replicas; gradients all-reduced in buckets during backward", kOptions, cost}};

}  // namespace
}  // namespace shardmark::laws
