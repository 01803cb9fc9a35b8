// The registry of reductions.
#include "strategies/reductions/reduction.h"

namespace shardmark::strategies {

const ChoiceKind& reduction_kind() {
  static const ChoiceKind kind = [] {
    ChoiceKind all{"reduction", {}, [](const std::string& name) -> const OptionTable& {
                     return reduction(name).options;
                   }};
    for (const auto& [name, entry] : Registry<Reduction>::instance().entries()) all.names.push_back(name);
    return all;
  }();
  return kind;
}

Choice reduction_of(const Options& ddp_options) {
  return choice_from_text(ddp_options.at("reduction").get<std::string>());
}

}  // namespace shardmark::strategies
