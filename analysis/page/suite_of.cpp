// See suite_of.h. Options and choices are brought into the nested form that suites have.
#include "analysis/page/suite_of.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "analysis/known.h"
#include "base/error.h"
#include "laws/vocabulary.h"
#include "schema/json.h"

namespace shardmark {
namespace {

using Node = nlohmann::ordered_json;

// A study may be of another program: what does not read as a choice is taken as a name.
Choice choice_or_name(const std::string& text) {
  try {
    return choice_from_text(text);
  } catch (const UsageError&) {
    return {text};
  }
}

Node choice_node(const Choice& choice, const OptionTable& table) {
  const Choice brief = without_defaults(choice, table);
  Node options = Node::object();
  for (const auto& [key, value] : brief.options) {
    const auto spec =
        std::find_if(table.begin(), table.end(), [&](const OptionSpec& s) { return s.key == key; });
    if (spec == table.end() || spec->type != OptionType::choice || !value.is<std::string>()) {
      options[key] = to_json(value);
      continue;
    }
    const Choice inner = choice_or_name(value.get<std::string>());
    const auto& names = spec->kind().names;
    const bool is_known = std::find(names.begin(), names.end(), inner.name) != names.end();
    options[key] = choice_node(inner, is_known ? spec->kind().options(inner.name) : OptionTable{});
  }
  if (options.empty()) return choice.name;
  return {{choice.name, options}};
}

Node training_node(const TrainingPoint& t, int64_t global_batch) {
  const TrainingPoint defaults;
  Node node = {{"model", choice_node(t.model, known_model_options(t.model))},
               {"data", choice_node(t.data, known_data_options(t.data))},
               {"strategy", choice_node(t.strategy, known_options(t.strategy))},
               {"optimizer", choice_node(t.optimizer, known_optimizer_options(t.optimizer))},
               {"precision", t.precision}};
  if (t.reduce_dtype != defaults.reduce_dtype) node["reduce_dtype"] = t.reduce_dtype;
  if (t.clip_norm != defaults.clip_norm) node["clip_norm"] = t.clip_norm;
  if (t.checkpointing != defaults.checkpointing) node["checkpointing"] = t.checkpointing;
  if (t.accumulation != defaults.accumulation) node["accumulation"] = t.accumulation;
  if (t.scaling == "strong")
    node["global_batch"] = global_batch;
  else
    node["batch_size"] = t.batch_size == kLargest ? Node("largest") : Node(t.batch_size);
  return node;
}

Node collective_node(const CollectivePoint& c) {
  Node node = {{"operation", c.operation}, {"bytes", c.bytes}, {"dtype", c.dtype}};
  if (c.reduction != "none") node["reduction"] = c.reduction;
  node["in_place"] = c.in_place;
  return node;
}

Node sampling_node(const Sampling& s) {
  Node node = {{"warmup_steps", s.warmup_steps},
               {"min_steps", s.min_steps},
               {"max_steps", s.max_steps},
               {"time_limit", s.time_limit_s},
               {"precision", s.precision}};
  if (s.duration_s > 0) node["duration"] = Node(s.duration_s).dump() + "s";
  return node;
}

// Words that YAML takes for something else, and whatever is no plain word, are quoted.
std::string scalar(const std::string& word) {
  constexpr std::array kTaken = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"};
  const bool is_plain =
      !word.empty() && std::isalpha(static_cast<unsigned char>(word[0])) != 0 &&
      std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
  if (is_plain && std::find(kTaken.begin(), kTaken.end(), word) == kTaken.end()) return word;
  return Node(word).dump(-1, ' ', false, Node::error_handler_t::replace);
}

std::string flow(const Node& node) {
  if (node.is_string()) return scalar(node.get<std::string>());
  if (!node.is_structured()) return node.dump();
  std::string items;
  for (const auto& [key, value] : node.items())
    items += (items.empty() ? "" : ", ") + (node.is_object() ? scalar(key) + ": " : "") + flow(value);
  return node.is_object() ? "{" + items + "}" : "[" + items + "]";
}

}  // namespace

std::string suite_of(const Point& point) {
  Node suite = {{"name", "point"}, {"seed", point.seed}, {"ranks", point.ranks}};
  if (!point.transport.empty()) {
    const Choice transport = choice_or_name(point.transport);
    suite["transport"] = choice_node(transport, known_transport_options(transport));
  }
  suite["sampling"] = sampling_node(point.sampling);
  if (point.workload == "collective")
    suite["collectives"] = collective_node(point.collective);
  else
    suite["training"] = training_node(point.training, point.global_batch());
  std::string yaml;
  for (const auto& [key, value] : suite.items()) yaml += key + ": " + flow(value) + "\n";
  return yaml;
}

}  // namespace shardmark
