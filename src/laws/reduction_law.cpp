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

Choice reduction_of(const Options& strategy_options) {
  return choice_from_text(strategy_options.at("reduction").get<std::string>());
}

}  // namespace shardmark::laws
