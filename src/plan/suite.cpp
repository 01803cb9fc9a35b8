// Reads a suite: its blocks, then the changes of the command line; expands the blocks to points, and removes
// those that `exclude` names.
#include "plan/suite.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "plan/axes.h"
#include "plan/exclude.h"
#include "plan/warnings.h"
#include "schema/file.h"

namespace shardmark {
namespace {

constexpr size_t kMostPoints = 100000;  // with repeats; a guard against mistakes

void read_head(const YamlMap& top, const Overrides& overrides, Suite& suite) {
  suite.name = std::filesystem::path(suite.path).stem().string();
  if (const auto* found = top.find("name")) suite.name = found->text();
  if (const auto* found = top.find("description")) suite.description = found->text();
  if (const auto* found = top.find("seed")) suite.seed = found->value(values::kSeed);
  if (const auto* found = top.find("repeats")) suite.repeats = found->value(values::kRepeats);
  if (const auto* found = top.find("memory_limit")) suite.memory_limit_bytes = found->value(values::kMemory);
  if (const auto* found = top.find("shuffle")) suite.shuffle = found->boolean();
  if (overrides.seed) suite.seed = *overrides.seed;
  if (overrides.repeats) suite.repeats = *overrides.repeats;
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
  return std::any_of(overrides.axes.begin(), overrides.axes.end(),
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

Suite parse_suite(const std::string& text, const std::string& path, const Overrides& overrides) {
  Suite suite;
  suite.path = path;
  suite.text = text;
  const YamlMap top(YamlNode::parse(text, path), "the suite",
                    {"name", "description", "seed", "repeats", "shuffle", "memory_limit", "ranks",
                     "transport", "environment", "sampling", "training", "collectives", "exclude"});
  read_head(top, overrides, suite);

  const SuiteBlock defaults = read_defaults(top);
  std::vector<SuiteBlock> blocks;
  read_blocks(top.find("training"), "training", defaults, blocks);
  read_blocks(top.find("collectives"), "collective", defaults, blocks);
  if (blocks.empty())
    top.node().fail("nothing to measure; a suite has 'training' or 'collectives' (see suites/README.md)");
  const auto rules = read_rules(top.find("exclude"));
  apply(overrides, blocks, path);

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
