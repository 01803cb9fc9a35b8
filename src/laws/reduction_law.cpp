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

ReductionCost reduction_cost(const CostInput& ddp) {
  const auto layout = even_layout(ddp.model, 1);
  const auto cut = ddp_buckets(ddp.model, ddp.options, ddp.bytes.reduce);
  const Choice reduction = reduction_of(ddp.options);
  return Registry<ReductionLaw>::instance()
      .get(reduction.name, "reduction")
      .cost({ddp.model, layout, cut, ddp.ranks, ddp.bytes.reduce, reduction.options});
}

}  // namespace shardmark::laws
