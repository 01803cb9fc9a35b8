// Makes a kind of choice of each table of names.
#include "strategies/choice_kinds.h"

#include <algorithm>
#include <map>
#include <string>

#include "base/error.h"
#include "schema/choice.h"
#include "specs/collectives.h"
#include "specs/model_table.h"
#include "specs/parts.h"
#include "specs/specs.h"
#include "specs/tokens.h"
#include "strategies/pipeline.h"
#include "strategies/strategy.h"

namespace shardmark {
namespace {

// The loads that measure interference between a collective and other work: the values of the axis `beside`,
// with their options. There are two kinds of computation, because a collective slows them down in two ways: a
// matrix product loses cores (on a GPU, in whole waves of its tiles), and a copy loses memory bandwidth.
// Sources: DeepSpeed-Domino, arXiv 2409.15241; ConCCL, arXiv 2412.14335.
struct BesideSpec {
  std::string description;
  OptionTable options = {};
};
constexpr double kMostSide = 1 << 20, kMostBytes = int64_t{1} << 40;

const std::map<std::string, BesideSpec>& beside_specs() {
  static const std::map<std::string, BesideSpec> table = {
      {"alone", {"nothing: the collective is all that runs"}},
      {"matmul",
       {"a matrix product [m, k] x [k, n], bound by computing",
        {{"m", OptionType::integer, 1024, "rows", {}, 1, kMostSide},
         {"n", OptionType::integer, 1024, "columns", {}, 1, kMostSide},
         {"k", OptionType::integer, 1024, "terms of a sum", {}, 1, kMostSide},
         {"dtype",
          OptionType::text,
          "float32",
          "type of the elements",
          {"float32", "bfloat16", "float16"}}}}},
      {"copy",
       {"a copy from memory to memory, bound by its bandwidth",
        {{"bytes",
          OptionType::integer,
          int64_t{64} << 20,
          "that are read, and as many that are written",
          {},
          64,
          kMostBytes}}}},
      {"block",
       {"forward and backward of one block of a model",
        {{"model",
          OptionType::choice,
          "gpt2(layers=1)",
          "the model; of its blocks the one in the middle",
          {},
          0,
          0,
          model_kind},
         {"batch", OptionType::integer, 1, "samples", {}, 1, kMostSide}}}},
      {"collective",
       {"another collective, on a communicator of its own",
        {{"operation", OptionType::text, "all_reduce", "which", specs::collective_names()},
         {"bytes", OptionType::integer, int64_t{1} << 20, "its message", {}, 4, kMostBytes}}}}};
  return table;
}

// The kinds below are made when they are first asked for. The registries of models and strategies are
// filled by objects of other files that are initialized before main() in no particular order, so that their
// names would be incomplete if a kind were a global object.
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

const ChoiceKind& lr_scheduler_kind() {
  static const ChoiceKind kind = {"schedule", names_of(specs::lr_scheduler_specs()),
                                  [](const std::string& name) -> const OptionTable& {
                                    return specs::lr_scheduler_specs().at(name).options;
                                  }};
  return kind;
}

const ChoiceKind& transport_kind() {
  static const ChoiceKind kind = {"transport", names_of(specs::transport_specs()), specs::transport_options};
  return kind;
}

const ChoiceKind& save_kind() {
  static const ChoiceKind kind = {
      "save", names_of(specs::save_specs()),
      [](const std::string& name) -> const OptionTable& { return specs::save_specs().at(name).options; }};
  return kind;
}

const ChoiceKind& products_kind() {
  static const ChoiceKind kind = {
      "products", names_of(specs::products_specs()),
      [](const std::string& name) -> const OptionTable& { return specs::products_specs().at(name).options; }};
  return kind;
}

const ChoiceKind& parts_kind() {
  static const ChoiceKind kind = {
      "parts", names_of(specs::parts_specs()),
      [](const std::string& name) -> const OptionTable& { return specs::parts_specs().at(name).options; },
      [](const Choice& parts) {
        // The constructor throws if the options contradict each other. The object itself is not needed.
        if (parts.name == "experts") specs::TokenExchange{parts};
      }};
  return kind;
}

const ChoiceKind& beside_kind() {
  static const ChoiceKind kind = {
      "beside", names_of(beside_specs()),
      [](const std::string& name) -> const OptionTable& { return beside_specs().at(name).options; }};
  return kind;
}

const ChoiceKind& kind_of(const std::string& axis) {
  static const std::map<std::string, const ChoiceKind& (*)()> kinds = {
      {"model", model_kind},         {"data", data_kind},
      {"strategy", strategy_kind},   {"optimizer", optimizer_kind},
      {"transport", transport_kind}, {"pipeline_schedule", strategies::pipeline_schedule_kind},
      {"parts", parts_kind},         {"beside", beside_kind},
      {"save", save_kind},           {"products", products_kind},
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
