// ddp: replicas that average their gradients with one all-reduce per bucket, 2(N-1)/N M bytes a rank.
#include "laws/layout.h"
#include "laws/replica_cost.h"
#include "laws/strategy_law.h"

namespace shardmark::laws {
namespace {

Cost cost(const CostInput& input) {
  const auto layout = even_layout(input.model, 1);
  const auto elements = [&](const char* option) {
    return static_cast<int64_t>(input.options.at(option).get<double>() * 1e6) / input.bytes.reduce;
  };
  Cost cost = replica_cost(input, layout);
  cost.traffic_bytes =
      static_cast<double>(total_numel(layout) * input.bytes.reduce) * ring_factor("all_reduce", input.ranks);
  cost.num_operations = static_cast<int64_t>(
      buckets(input.model, layout, elements("first_bucket_mb"), elements("bucket_mb")).size());
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
