// The format is that of `man topology.conf`: keys in any case, comments after "#", and names as hostlists.
#include "doctor/switches.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "base/hostlist.h"
#include "base/text.h"
#include "schema/file.h"

namespace shardmark::doctor {
namespace {

[[noreturn]] void refuse(const std::string& path, size_t line, const std::string& what) {
  throw UsageError(fmt::format("{}:{}: {}", path, line, what));
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

Switch switch_in(std::istringstream words, const std::string& path, size_t line) {
  Switch one{.name = "", .line = line};
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    if (equals == word.npos || equals + 1 == word.size())
      refuse(path, line, "expected Key=Value, got " + quoted_line(word));
    const std::string value = word.substr(equals + 1);
    try {
      if (lower(key) == "switchname")
        one.name = value;
      else if (lower(key) == "nodes")
        one.nodes = expand_hostlist(value);
      else if (lower(key) == "switches")
        one.children = expand_hostlist(value);
      else if (lower(key) != "linkspeed")
        throw UsageError(quoted_line(key) + " is no key of topology.conf (topology/tree); " +
                         accepted_words(key, {"SwitchName", "Nodes", "Switches", "LinkSpeed"}));
    } catch (const UsageError& error) {
      refuse(path, line, error.what());
    }
  }
  if (one.name.empty()) refuse(path, line, "no SwitchName=; begin the line with the name of the switch");
  if (one.nodes.empty() == one.children.empty())
    refuse(path, line, one.name + " needs either Nodes= or Switches=");
  return one;
}

// Sets the parent of each switch. A switch may have one line and one parent. The last loop finds circles: a
// way upwards that has more steps than there are switches never ends.
void link_parents(const std::string& path, std::vector<Switch>& all) {
  std::map<std::string, int> by_name;
  for (size_t i = 0; i < all.size(); ++i)
    if (const auto [had, is_new] = by_name.emplace(all[i].name, static_cast<int>(i)); !is_new)
      refuse(path, all[i].line,
             fmt::format("switch {} is in line {}, too", all[i].name,
                         all[static_cast<size_t>(had->second)].line));
  for (size_t i = 0; i < all.size(); ++i)
    for (const std::string& child : all[i].children) {
      const auto found = by_name.find(child);
      if (found == by_name.end())
        refuse(path, all[i].line, fmt::format("no line describes switch {0}; add SwitchName={0} ...", child));
      Switch& below = all[static_cast<size_t>(found->second)];
      if (below.parent >= 0)
        refuse(path, all[i].line,
               fmt::format("switch {} is below {} (line {}), too", child,
                           all[static_cast<size_t>(below.parent)].name,
                           all[static_cast<size_t>(below.parent)].line));
      below.parent = static_cast<int>(i);
    }
  for (const Switch& one : all) {
    size_t steps = 0;
    for (int at = one.parent; at >= 0; at = all[static_cast<size_t>(at)].parent)
      if (++steps > all.size()) refuse(path, one.line, fmt::format("switch {} is above itself", one.name));
  }
}

}  // namespace

Switches::Switches(std::string path, std::vector<Switch> all) : path_(std::move(path)), all_(std::move(all)) {
  link_parents(path_, all_);
  for (size_t i = 0; i < all_.size(); ++i)
    for (const std::string& node : all_[i].nodes)
      if (const auto [had, is_new] = leaf_.emplace(node, static_cast<int>(i)); !is_new) {
        const Switch& other = all_[static_cast<size_t>(had->second)];
        refuse(path_, all_[i].line,
               fmt::format("node {} hangs on switch {} (line {}), too", node, other.name, other.line));
      }
}

std::vector<int> Switches::above(const std::string& host) const {
  auto found = leaf_.find(host);
  if (found == leaf_.end()) found = leaf_.find(host.substr(0, host.find('.')));
  if (found == leaf_.end())
    throw UsageError(fmt::format(
        "{}: no switch has node {}, where ranks run; add it to the Nodes= of its switch", path_, host));
  std::vector<int> path;
  for (int at = found->second; at >= 0; at = all_[static_cast<size_t>(at)].parent) path.push_back(at);
  return path;
}

const Switch& Switches::leaf_of(const std::string& host) const {
  return all_[static_cast<size_t>(above(host).front())];
}

Switches read_switches(const std::string& path) {
  const auto text = read_input(path, kMostSuiteBytes);
  if (!text) throw UsageError(path + ": there is no such file");
  std::vector<Switch> all;
  std::istringstream lines(*text);
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line.substr(0, line.find('#')));
    if (!(words >> std::ws).eof()) all.push_back(switch_in(std::move(words), path, number));
  }
  if (all.empty())
    throw UsageError(path + ": no line begins with SwitchName=, as those of Slurm's topology.conf do");
  return Switches(path, std::move(all));
}

}  // namespace shardmark::doctor
