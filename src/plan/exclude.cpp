// Turns each key of a rule into a test of a point; the rule matches if all tests do.
#include "plan/exclude.h"

#include <algorithm>
#include <set>

#include "plan/axis_values.h"
#include "plan/choice_axis.h"
#include "plan/suite.h"

namespace shardmark {
namespace {

bool matches(const Choice& choice, const Choice& part) {
  if (choice.name != part.name) return false;
  return std::all_of(part.options.begin(), part.options.end(),
                     [&](const auto& option) { return choice.options.at(option.first) == option.second; });
}

// A choice matches if its name and all options that the rule gives are equal.
Rule choice_rule(const AxisRow& axis, const YamlNode& node) {
  return [&axis, parts = read_partial_choices(node, kind_of(axis.key))](const Point& point) {
    const AxisValue value = value_of(axis, point);
    const auto* text = std::get_if<std::string>(&value);
    if (text != nullptr && text->empty()) return false;  // not given: the device decides
    const Choice choice = text == nullptr ? std::get<Choice>(value) : choice_from_text(*text);
    return std::any_of(parts.begin(), parts.end(), [&](const Choice& part) { return matches(choice, part); });
  };
}

Rule value_rule(const AxisRow& axis, const YamlNode& node) {
  return [&axis, place = node.place(), values = read_values(axis, node)](const Point& point) {
    if (axis.key == std::string_view("ranks") && point.ranks == kWorldSize)
      throw UsageError(place +
                       "exclude names ranks, but the suite lists none; give the suite a list of ranks");
    return std::find(values.begin(), values.end(), value_of(axis, point)) != values.end();
  };
}

Rule axis_rule(const AxisRow& axis, const YamlNode& node) {
  const bool is_choice = std::holds_alternative<Choices>(axis.accepted);
  return [&axis, rule = is_choice ? choice_rule(axis, node) : value_rule(axis, node)](const Point& point) {
    return has_axis(point, axis) && rule(point);
  };
}

}  // namespace

Rule read_rule(const YamlNode& node) {
  std::set<std::string> sorted;
  for_each_axis([&](const AxisRow& axis) { sorted.insert(axis.key); });
  const std::vector<std::string> keys(sorted.begin(), sorted.end());
  const YamlMap map(node, "a rule of exclude", keys);  // checks the keys
  std::vector<Rule> tests;
  for (const auto& entry : node.entries()) tests.push_back(axis_rule(axis_named(entry.key()), entry));
  if (tests.empty()) node.fail("an empty rule would leave out every point; " + accepted_words("", keys));
  return [tests](const Point& point) {
    return std::all_of(tests.begin(), tests.end(), [&](const Rule& test) { return test(point); });
  };
}

}  // namespace shardmark
