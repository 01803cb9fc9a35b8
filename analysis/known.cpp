// See known.h.
#include "analysis/known.h"

#include "laws/strategy_law.h"

namespace shardmark {

std::optional<laws::ModelTable> known_table(const Choice& model) {
  const auto& known = Registry<laws::ModelLaw>::instance();
  if (!known.contains(model.name)) return std::nullopt;
  const laws::ModelLaw& law = known.get(model.name, "model");
  try {
    return law.table(resolve(model, law.options, "model").options);
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

const OptionTable& known_options(const Choice& strategy) {
  static const OptionTable none;
  const auto& known = Registry<laws::StrategyLaw>::instance();
  return known.contains(strategy.name) ? known.get(strategy.name, "strategy").options : none;
}

}  // namespace shardmark
