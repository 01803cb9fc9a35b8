// Writes and examines one small program of each strategy.
#include "strategies/traits.h"

#include <map>

#include "strategies/strategy.h"

namespace shardmark::strategies {
namespace {

Traits look_at(const std::string& name, const Strategy& strategy) {
  const specs::ModelSpec& spec = specs::model_spec("mlp");
  const ModelTable table = spec.table(resolve({"mlp"}, spec.options, "model").options);
  const Choice choice = resolve({name}, strategy.options, "strategy");
  const Program program =
      strategy.step({table, /*ranks=*/2, /*accumulation=*/1, {}, /*optimizer_elements=*/0, choice.options});
  return {!program.calls.empty(), !program.buckets.empty(), program.strategy != name};
}

}  // namespace

const Traits& traits_of(const std::string& name) {
  static const std::map<std::string, Traits> known = [] {
    std::map<std::string, Traits> all;
    for (const auto& [known_name, strategy] : Registry<Strategy>::instance().entries())
      all.emplace(known_name, look_at(known_name, strategy));
    return all;
  }();
  static const Traits unknown;
  const auto found = known.find(name);
  return found == known.end() ? unknown : found->second;
}

}  // namespace shardmark::strategies
