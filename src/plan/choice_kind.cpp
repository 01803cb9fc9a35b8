// The kinds of choices and where their tables are.
#include "laws/model_table.h"
#include "laws/rate_schedules.h"
#include "laws/vocabulary.h"
#include "plan/choice_axis.h"
#include "strategies/strategy.h"

namespace shardmark {
namespace {

template <class Entries>
std::vector<std::string> names_of(const Entries& entries) {
  std::vector<std::string> names;
  names.reserve(entries.size());
  for (const auto& [name, entry] : entries) names.push_back(name);
  return names;
}

void build_table(const Choice& model) { laws::model_law(model.name).table(model.options); }

}  // namespace

const ChoiceKind& model_kind() {
  static const ChoiceKind kind = {
      "model", names_of(Registry<laws::ModelLaw>::instance().entries()),
      [](const std::string& name) -> const OptionTable& { return laws::model_law(name).options; },
      build_table};
  return kind;
}

const ChoiceKind& strategy_kind() {
  static const ChoiceKind kind = {
      "strategy", names_of(Registry<strategies::Strategy>::instance().entries()),
      [](const std::string& name) -> const OptionTable& { return strategies::strategy(name).options; }};
  return kind;
}

const ChoiceKind& data_kind() {
  static const ChoiceKind kind = {
      "data", names_of(laws::data_laws()),
      [](const std::string& name) -> const OptionTable& { return laws::data_laws().at(name).options; }};
  return kind;
}

const ChoiceKind& optimizer_kind() {
  static const ChoiceKind kind = {
      "optimizer", names_of(laws::optimizer_laws()),
      [](const std::string& name) -> const OptionTable& { return laws::optimizer_laws().at(name).options; }};
  return kind;
}

const ChoiceKind& schedule_kind() {
  static const ChoiceKind kind = {
      "schedule", names_of(laws::rate_schedules()),
      [](const std::string& name) -> const OptionTable& { return laws::rate_schedules().at(name).options; }};
  return kind;
}

const ChoiceKind& transport_kind() {
  static const ChoiceKind kind = {"transport", names_of(laws::transport_laws()), laws::transport_options};
  return kind;
}

}  // namespace shardmark
