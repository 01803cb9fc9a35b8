// Reads a suite: its blocks, then the changes of the command line; expands the blocks to points, and removes
// those that `exclude` names.
#include "plan/suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>
#include <vector>

#include "plan/axes.h"
#include "plan/axis_values.h"
#include "plan/choice_axis.h"
#include "plan/warnings.h"
#include "plan/yaml_node.h"
#include "schema/file.h"
#include "schema/point.h"

namespace shardmark {
namespace {

// A rule that excludes points from a suite. It is a map from keys to a value or a list, and a point that
// matches every key is excluded. Choices match by name, or by name and the options that the rule gives.
using Rule = std::function<bool(const Point&)>;  // takes a point as in Suite::points

bool matches(const Choice& choice, const Choice& part) {
  if (choice.name != part.name) return false;
  return std::all_of(part.options.begin(), part.options.end(), [&](const auto& option) {
    const OptionValue* const value = choice.options.find(option.first);
    return value == nullptr ? option.second.is_nothing() : *value == option.second;
  });
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

constexpr size_t kMostPoints = 100000;  // with repeats; a guard against mistakes

constexpr const char* kKeysOfHead[] = {"seed", "repeats", "shuffle", "memory_limit"};

void read_head(const YamlMap& top, Suite& suite) {
  if (const auto* found = top.find("seed")) suite.seed = found->value(values::kSeed);
  if (const auto* found = top.find("repeats")) suite.repeats = found->value(values::kRepeats);
  if (const auto* found = top.find("memory_limit")) suite.memory_limit_bytes = found->value(values::kMemory);
  if (const auto* found = top.find("shuffle")) suite.shuffle = found->boolean();
}

const std::vector<std::string>& accept_keys() {
  static const std::vector<std::string> keys = {"pairs", "storage", "folder", "baseline"};
  return keys;
}

Acceptance read_accept(const YamlNode& node, Acceptance accept) {
  const YamlMap map(node, "accept", accept_keys());
  if (const auto* found = map.find("pairs")) accept.pairs_s = found->value(values::kDuration);
  if (const auto* found = map.find("storage")) accept.storage_bytes = found->value(values::kMemory);
  if (const auto* found = map.find("folder")) accept.folder = found->text();
  if (const auto* found = map.find("baseline")) accept.baseline = found->text();
  return accept;
}

// What --set gives: a map of keys of the suite's top level and of its blocks.
YamlMap values_set(const Overrides& overrides) {
  std::vector<std::string> axes, typed;
  for_each_axis([&](const AxisRow& axis) { axes.emplace_back(axis.key); });
  axes.insert(axes.end(), std::begin(kKeysOfHead), std::end(kKeysOfHead));
  typed = axes;
  for (const std::string& key : sampling_keys()) typed.push_back("sampling." + key);
  for (const std::string& key : accept_keys()) typed.push_back("accept." + key);
  axes.insert(axes.end(), {"sampling", "accept"});
  YamlMap set(YamlNode::of_flag(overrides.set, "--set", typed), "--set", axes);
  for (const auto& [key, texts] : overrides.axes)
    if (!texts.empty() && set.find(key) != nullptr)
      set.find(key)->fail(fmt::format("{} gives it, too; leave out one of them", axis_named(key).flag));
  return set;
}

// Appends the blocks under a key of the suite.
void read_blocks(const YamlNode* node, const std::string& workload, const SuiteBlock& defaults,
                 std::vector<SuiteBlock>& blocks) {
  if (node != nullptr)
    for (const auto& block : node->items()) blocks.push_back(read_block(block, workload, defaults));
}

struct PlacedRule {
  std::string place;
  Rule names;
};

std::vector<PlacedRule> read_rules(const YamlNode* node) {
  std::vector<PlacedRule> rules;
  if (node == nullptr || (node->is_list() && node->is_empty())) return rules;
  for (const auto& rule : node->items()) rules.push_back({rule.place(), read_rule(rule)});
  return rules;
}

bool changes_axes(const Overrides& overrides) {
  return !overrides.set.empty() || std::any_of(overrides.axes.begin(), overrides.axes.end(),
                                               [](const auto& axis) { return !axis.second.empty(); });
}

// Removes excluded points. A rule that matches no point is probably a mistake and gives a warning, unless the
// command line changed the axes, which may have removed what the rule is about.
void leave_out(const std::vector<PlacedRule>& rules, const Overrides& overrides, Suite& suite) {
  std::vector<bool> used(rules.size(), false);
  std::vector<Point> points;
  std::vector<size_t> blocks;
  for (size_t at = 0; at < suite.points.size(); ++at) {
    bool is_named = false;
    // Every rule is asked, also after one has matched, so that a rule whose points others exclude as well
    // does not count as unused.
    for (size_t i = 0; i < rules.size(); ++i)
      if (rules[i].names(suite.points[at])) is_named = used[i] = true;
    if (is_named) continue;
    points.push_back(std::move(suite.points[at]));
    blocks.push_back(suite.blocks[at]);
  }
  suite.points = std::move(points);
  suite.blocks = std::move(blocks);
  for (size_t i = 0; i < rules.size(); ++i)
    if (!used[i] && !changes_axes(overrides))
      suite.warnings.push_back(rules[i].place + "this rule of exclude names no point of the suite");
}

void warn_of_points(Suite& suite) {
  std::set<std::string> warnings;
  for (const Point& point : suite.points)
    if (point.workload == "training")
      for (const std::string& warning : warnings_of(point)) warnings.insert(warning);
  for (const std::string& warning : warnings) suite.warnings.push_back(suite.path + ": " + warning);
}

}  // namespace

double longest_tests_s(const Acceptance& accept) {
  constexpr double kBesides = 120;       // products, copies, connections
  constexpr double kSlowStorage = 10e6;  // bytes/s, written and read back
  return 2 * accept.pairs_s + static_cast<double>(accept.storage_bytes) / kSlowStorage + kBesides;
}

Suite parse_suite(const std::string& text, const std::string& path, const Overrides& overrides) {
  Suite suite;
  suite.path = path;
  suite.text = text;
  const YamlMap top(YamlNode::parse(text, path), "the suite",
                    {"name", "description", "seed", "repeats", "shuffle", "memory_limit", "ranks",
                     "transport", "environment", "sampling", "accept", "training", "collectives", "exclude"});
  suite.name = std::filesystem::path(path).stem().string();
  if (const auto* found = top.find("name")) suite.name = found->text();
  if (const auto* found = top.find("description")) suite.description = found->text();
  // The head of the file is read first, then that of --set, and then --repeats, so that each replaces the
  // one before.
  const YamlMap set = values_set(overrides);
  read_head(top, suite);
  read_head(set, suite);
  if (overrides.repeats) suite.repeats = *overrides.repeats;
  if (const auto* found = top.find("accept")) suite.accept = read_accept(*found, {});
  if (const auto* found = set.find("accept")) {
    if (!suite.accept)
      found->fail(
          "the suite has no `accept`, so it tests no nodes; take the suite accept, or write it there");
    suite.accept = read_accept(*found, *suite.accept);
  }

  // The blocks and the rules of the file are read before the command line changes the blocks. So a mistake
  // in the file is an error even where a flag replaces the value.
  const SuiteBlock defaults = read_defaults(top);
  std::vector<SuiteBlock> blocks;
  read_blocks(top.find("training"), "training", defaults, blocks);
  read_blocks(top.find("collectives"), "collective", defaults, blocks);
  if (blocks.empty())
    top.node().fail("nothing to measure; a suite has 'training' or 'collectives' (see suites/README.md)");
  const auto rules = read_rules(top.find("exclude"));
  apply(set, blocks, path);
  apply(overrides, blocks, path);

  // Each block becomes its points. suite.blocks remembers the block of each point.
  for (size_t number = 0; number < blocks.size(); ++number) {
    const std::vector<Point> points = expand(blocks[number], suite.warnings);
    suite.points.insert(suite.points.end(), points.begin(), points.end());
    suite.blocks.resize(suite.points.size(), number);
  }
  leave_out(rules, overrides, suite);
  for (auto& point : suite.points) {
    point.seed = suite.seed;
    point.folder = std::filesystem::path(path).parent_path();
  }
  warn_of_points(suite);
  if (suite.points.empty())
    throw UsageError(path + ": exclude leaves no point; shorten its rules or widen the axes");
  if (suite.points.size() * static_cast<size_t>(suite.repeats) > kMostPoints)
    throw UsageError(path + ": more than " + std::to_string(kMostPoints) +
                     " points; shorten the lists or the repeats");
  return suite;
}

Suite read_suite(const std::string& path, const Overrides& overrides) {
  return parse_suite(read_text(path, "shardmark list shows the available suites"), path, overrides);
}

}  // namespace shardmark
