// Makes a kind of choice of each table of names.
#include "strategies/choice_kinds.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "specs/model_table.h"
#include "specs/parts.h"
#include "specs/rate_schedules.h"
#include "specs/specs.h"
#include "strategies/beside.h"
#include "strategies/pipeline.h"
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

void build_table(const Choice& model) { specs::model_table(model); }

}  // namespace

const ChoiceKind& model_kind() {
  static const ChoiceKind kind = {
      "model", names_of(Registry<specs::ModelSpec>::instance().entries()),
      [](const std::string& name) -> const OptionTable& { return specs::model_spec(name).options; },
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
      "data", names_of(specs::data_specs()),
      [](const std::string& name) -> const OptionTable& { return specs::data_specs().at(name).options; }};
  return kind;
}

const ChoiceKind& optimizer_kind() {
  static const ChoiceKind kind = {"optimizer", names_of(specs::optimizer_specs()),
                                  [](const std::string& name) -> const OptionTable& {
                                    return specs::optimizer_specs().at(name).options;
                                  }};
  return kind;
}

const ChoiceKind& schedule_kind() {
  static const ChoiceKind kind = {
      "schedule", names_of(specs::rate_schedules()),
      [](const std::string& name) -> const OptionTable& { return specs::rate_schedules().at(name).options; }};
  return kind;
}

const ChoiceKind& transport_kind() {
  static const ChoiceKind kind = {"transport", names_of(specs::transport_specs()), specs::transport_options};
  return kind;
}

const ChoiceKind& parts_kind() {
  static const ChoiceKind kind = {
      "parts", names_of(specs::parts_specs()),
      [](const std::string& name) -> const OptionTable& { return specs::parts_specs().at(name).options; }};
  return kind;
}

const ChoiceKind& beside_kind() {
  static const ChoiceKind kind = {"beside", names_of(strategies::beside_specs()),
                                  [](const std::string& name) -> const OptionTable& {
                                    return strategies::beside_specs().at(name).options;
                                  }};
  return kind;
}

const ChoiceKind& kind_of(const std::string& axis) {
  static const std::map<std::string, const ChoiceKind& (*)()> kinds = {
      {"model", model_kind},         {"data", data_kind},
      {"strategy", strategy_kind},   {"optimizer", optimizer_kind},
      {"transport", transport_kind}, {"pipeline_schedule", strategies::pipeline_schedule_kind},
      {"parts", parts_kind},         {"beside", beside_kind},
  };
  return kinds.at(axis)();
}

const OptionTable& known_options(const std::string& axis, const Choice& choice) {
  static const OptionTable none;
  const ChoiceKind& kind = kind_of(axis);
  const bool is_known = std::find(kind.names.begin(), kind.names.end(), choice.name) != kind.names.end();
  return is_known ? kind.options(choice.name) : none;
}

}  // namespace shardmark
