// See suite_of.h. Options and choices are brought into the nested form that suites have.
#include "analysis/frame/suite_of.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>

#include "schema/axes.h"
#include "schema/json.h"
#include "strategies/choice_kinds.h"

namespace shardmark {
namespace {

using Node = nlohmann::ordered_json;

// A choice as suites write it: its name alone if all options are at their defaults, else {name: {options}}.
// An option whose value is a choice itself is written in the same form.
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

// What a reader of a layout asks for first.
bool is_of_layout(const AxisRow& axis, const Point& point) {
  constexpr std::array kAlways = {"tensor", "pipeline", "accumulation", "precision", "checkpointing"};
  const std::string key = axis.key;
  return std::find(kAlways.begin(), kAlways.end(), key) != kAlways.end() ||
         (key == "pipeline_schedule" && point.training.pipeline > 1);
}

// A number, or its name: "none".
Node named_node(const AxisRow& axis, int64_t value) {
  for (const NamedNumber& named : axis.named)
    if (named.word != nullptr && named.number == value) return named.word;
  return value;
}

// Numbers, and what tables hide, are left out at their defaults, but not what is asked for `anyhow`.
void add_axis(const AxisRow& axis, const Point& point, Node& node, bool anyhow = false) {
  if ((axis.hides_default || std::holds_alternative<Whole>(axis.accepted)) && is_default(axis, point) &&
      !anyhow)
    return;
  visit_member(axis, point, [&]<class T>(const T& value) {
    if constexpr (std::is_same_v<T, Choice>)
      node[axis.key] = choice_node(value, known_options(axis.key, value));
    else if constexpr (std::is_same_v<T, std::string>)
      node[axis.key] =
          std::holds_alternative<Choices>(axis.accepted)
              ? choice_node(choice_or_name(value), known_options(axis.key, choice_or_name(value)))
              : Node(value);
    else if constexpr (std::is_same_v<T, int64_t>)
      node[axis.key] = anyhow || value < 0 ? named_node(axis, value) : Node(value);  // -1 has only a name
    else
      node[axis.key] = value;
  });
}

Node training_node(const Point& point, bool with_layout = false) {
  const TrainingPoint& t = point.training;
  Node node;
  // The two forms of the batch size are one number of the point; which of them a suite writes depends on
  // the scaling.
  for (const AxisRow& axis : kTrainingAxes)
    if (axis.scaling == nullptr) add_axis(axis, point, node, with_layout && is_of_layout(axis, point));
  if (t.scaling == "strong")
    node["global_batch"] = point.global_batch();
  else
    node["batch_size"] = t.batch_size == kLargest ? Node("largest") : Node(t.batch_size);
  return node;
}

Node collective_node(const Point& point) {
  Node node = {{"operation", ""}, {"bytes", 0}};  // these stand first
  for (const AxisRow& axis : kCollectiveAxes) add_axis(axis, point, node);
  if (node["reduction"] == "none") node.erase("reduction");
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

// Where and how it is measured, into the head of a suite.
void add_setting(const Point& point, Node& suite) {
  if (!point.transport.empty()) {
    const Choice transport = choice_or_name(point.transport);
    suite["transport"] = choice_node(transport, known_options("transport", transport));
  }
  if (!point.environment.empty()) suite["environment"] = point.environment;
  suite["sampling"] = sampling_node(point.sampling);
}

std::string lines_of(const Node& suite) {
  std::string yaml;
  for (const auto& [key, value] : suite.items()) yaml += key + ": " + flow(value) + "\n";
  return yaml;
}

std::string commented(const std::string& lines, const std::string& indent) {
  std::istringstream in(lines);
  std::string text;
  for (std::string line; std::getline(in, line);) text += indent + "# " + line + "\n";
  return text;
}

}  // namespace

std::string suite_of(const Point& point) {
  Node suite = {{"name", "point"}, {"seed", point.seed}, {"ranks", point.ranks}};
  add_setting(point, suite);
  if (point.workload == "collective")
    suite["collectives"] = collective_node(point);
  else
    suite["training"] = training_node(point);
  return lines_of(suite);
}

std::string suite_of(const SuiteHead& head, const std::vector<SuitePoint>& blocks) {
  // Repeats are starts of the ranks only in a suite with settings. If there are none, binding at its
  // default is written as one, which changes nothing else.
  Point first = blocks.at(0).point;
  if (first.environment.empty()) first.environment = "bind=auto";
  Node suite = {{"name", head.name},
                {"description", head.description},
                {"seed", first.seed},
                {"ranks", first.ranks},
                {"repeats", head.repeats}};
  add_setting(first, suite);
  std::string yaml = commented(head.comment, "") + lines_of(suite) + "training:\n";
  for (const SuitePoint& block : blocks)
    yaml += commented(block.comment, "  ") + "  - " + flow(training_node(block.point, /*with_layout=*/true)) +
            "\n";
  return yaml;
}

}  // namespace shardmark
