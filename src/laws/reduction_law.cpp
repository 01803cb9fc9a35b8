// The reductions as a kind of choice.
#include "laws/reduction_law.h"

namespace shardmark::laws {

const ChoiceKind& reduction_kind() {
  static const ChoiceKind kind = [] {
    ChoiceKind all{"reduction", {}, [](const std::string& name) -> const OptionTable& {
                     return Registry<ReductionLaw>::instance().get(name, "reduction").options;
                   }};
    for (const auto& [name, law] : Registry<ReductionLaw>::instance().entries()) all.names.push_back(name);
    return all;
  }();
  return kind;
}

Choice reduction_of(const Options& ddp_options) {
  return choice_from_text(ddp_options.at("reduction").get<std::string>());
}

std::vector<Bucket> ddp_buckets(const ModelTable& model, const Options& ddp_options, int64_t element_bytes) {
  const auto elements = [&](const char* option) {
    return static_cast<int64_t>(ddp_options.at(option).get<double>() * 1e6) / element_bytes;
  };
  return buckets(model, even_layout(model, 1), elements("first_bucket_mb"), elements("bucket_mb"));
}

namespace {

// Calls visit(law, input of the law) for ddp with these options.
template <class Visit>
auto with_reduction(const CostInput& ddp, Visit&& visit) {
  const auto layout = even_layout(ddp.model, 1);
  const auto cut = ddp_buckets(ddp.model, ddp.options, ddp.bytes.reduce);
  const Choice reduction = reduction_of(ddp.options);
  const ReductionInput input{ddp.model, layout, cut, ddp.ranks, ddp.bytes.reduce, reduction.options};
  return visit(Registry<ReductionLaw>::instance().get(reduction.name, "reduction"), input);
}

}  // namespace

std::vector<std::vector<BucketOperation>> bucket_operations(const CostInput& ddp) {
  return with_reduction(ddp, [](const ReductionLaw& law, const ReductionInput& input) {
    std::vector<std::vector<BucketOperation>> operations;
    for (const Bucket& bucket : input.buckets) operations.push_back(law.operations(input, bucket));
    return operations;
  });
}

ReductionCost reduction_cost(const CostInput& ddp) {
  ReductionCost cost = with_reduction(
      ddp, [](const ReductionLaw& law, const ReductionInput& input) { return law.cost(input); });
  for (const auto& bucket : bucket_operations(ddp))
    for (const BucketOperation& operation : bucket) {
      cost.traffic_bytes += static_cast<double>(operation.bytes) * ring_factor(operation.name, ddp.ranks);
      ++cost.num_operations;
    }
  return cost;
}

}  // namespace shardmark::laws
