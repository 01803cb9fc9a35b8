// ddp: replicas that sum their gradients bucket by bucket: with one all-reduce each, 2(N-1)/N M bytes a rank,
// or by another of laws/reductions/.
#include "laws/reduction_law.h"
#include "laws/replica_cost.h"

namespace shardmark::laws {
namespace {

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
  if (input.bytes.scaled && reduction_cost(input).residual_bytes > 0)
    return "reduction " + reduction.name +
           " keeps a part of the gradient, which the changing loss scale of fp16 would make wrong; take bf16 "
           "or another reduction";
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
