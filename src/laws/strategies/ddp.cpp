// ddp: replicas that sum their gradients bucket by bucket: with one all-reduce each, 2(N-1)/N M bytes a rank,
// or by another of laws/reductions/.
#include "laws/layout.h"
#include "laws/reduction_law.h"
#include "laws/replica_cost.h"
#include "laws/strategy_law.h"

namespace shardmark::laws {
namespace {

ReductionCost reduction_cost(const CostInput& input) {
  const auto layout = even_layout(input.model, 1);
  const auto elements = [&](const char* option) {
    return static_cast<int64_t>(input.options.at(option).get<double>() * 1e6) / input.bytes.reduce;
  };
  const auto cut = buckets(input.model, layout, elements("first_bucket_mb"), elements("bucket_mb"));
  const Choice reduction = reduction_of(input.options);
  return Registry<ReductionLaw>::instance()
      .get(reduction.name, "reduction")
      .cost({input.model, layout, cut, input.ranks, input.bytes.reduce, reduction.options});
}

Cost cost(const CostInput& input) {
  const ReductionCost reduction = reduction_cost(input);
  Cost cost = replica_cost(input, even_layout(input.model, 1));
  cost.gradient_bytes += reduction.residual_bytes;
  cost.ideal_bytes += reduction.residual_bytes;
  cost.transient_bytes = reduction.transient_bytes;
  cost.traffic_bytes = reduction.traffic_bytes;
  cost.num_operations = reduction.num_operations;
  return cost;
}

std::string impossible(const CostInput& input) {
  const Choice reduction = reduction_of(input.options);
  const auto& law = Registry<ReductionLaw>::instance().get(reduction.name, "reduction");
  if (input.bytes.reduce <= law.most_element_bytes) return {};
  return "reduction " + reduction.name + " takes gradients of at most " +
         std::to_string(law.most_element_bytes) + " bytes an element, the precision has " +
         std::to_string(input.bytes.reduce) + "; take fp32 or another reduction";
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
    {.key = "reduction",
     .type = OptionType::choice,
     .default_value = "plain",
     .description = "how a bucket is reduced",
     .kind = reduction_kind},
};

const Registration<StrategyLaw> registered{
    "ddp", {"replicas; gradients reduced in buckets during backward", kOptions, cost, impossible}};

}  // namespace
}  // namespace shardmark::laws
