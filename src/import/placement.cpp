// Derives the node and the device of each rank from sources and flags.
#include "import/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "import/lines.h"

namespace shardmark::imports {
namespace {

template <class Visit>
void for_each_measured(const std::vector<Read>& all, Visit visit) {
  for (const auto& [source, contents] : all)
    for (const Measured& one : contents.measured) visit(*source, one, one.record.point.ranks);
}

constexpr const char* kTwoStudies = "a study has one placement: import them into two";

int64_t per_node(int64_t ranks, int64_t nodes, const std::string& where) {
  if (ranks % nodes != 0)
    throw UsageError(fmt::format("{}{} ranks are no whole number for each of {} nodes", where, ranks, nodes));
  return ranks / nodes;
}

// Ranks per node according to the flags. --nodes is only possible if all records have the same number of
// ranks.
std::optional<int64_t> given_per_node(const std::vector<Read>& all, const Given& given) {
  if (given.ranks_per_node > 0) {
    if (given.nodes > 0 && most_ranks(all) != given.nodes * given.ranks_per_node)
      throw UsageError(fmt::format("--nodes {} x --ranks-per-node {} are not the {} ranks of these files",
                                   given.nodes, given.ranks_per_node, most_ranks(all)));
    return given.ranks_per_node;
  }
  if (given.nodes == 0) return std::nullopt;
  for_each_measured(all, [&](const Source& source, const Measured& one, int64_t ranks) {
    if (ranks != most_ranks(all))
      throw UsageError(
          fmt::format("--nodes is of one number of ranks, but {}{} ranks, others {}; give --ranks-per-node",
                      place(source, one.line), ranks, most_ranks(all)));
  });
  return per_node(most_ranks(all), given.nodes, "--nodes: ");
}

// Ranks per node according to the rows that ran on several nodes; otherwise the largest number of ranks on
// one node.
std::optional<int64_t> said_per_node(const std::vector<Read>& all) {
  std::optional<int64_t> found;
  int64_t most_on_one = 0;
  for_each_measured(all, [&](const Source& source, const Measured& one, int64_t ranks) {
    if (one.nodes == 1) most_on_one = std::max(most_on_one, ranks);
    if (one.nodes < 2) return;
    const int64_t each = per_node(ranks, one.nodes, place(source, one.line));
    if (found && *found != each)
      throw UsageError(fmt::format("{}{} ranks on {} nodes, but others have {} on each; {}",
                                   place(source, one.line), ranks, one.nodes, *found, kTwoStudies));
    found = each;
  });
  if (!found && most_on_one > 0) found = most_on_one;
  return found;
}

std::vector<std::string> numbered(int64_t ranks, int64_t per_node) {
  std::vector<std::string> nodes;
  for (int64_t rank = 0; rank < ranks; ++rank) nodes.push_back(fmt::format("node{}", rank / per_node + 1));
  return nodes;
}

void require_nodes(const std::vector<std::string>& rank_nodes, const std::vector<Read>& all, bool is_given) {
  for_each_measured(all, [&](const Source& source, const Measured& one, int64_t ranks) {
    const auto nodes = static_cast<int64_t>(std::set(rank_nodes.begin(), rank_nodes.begin() + ranks).size());
    if (one.nodes == 0 && !is_given)
      throw UsageError(fmt::format(
          "{}it does not say on how many nodes its {} ranks were, others do: give --ranks-per-node",
          place(source, one.line), ranks));
    if (one.nodes > 0 && one.nodes != nodes)
      throw UsageError(fmt::format("{}{} ranks on {} node{}, not on {}; {}", place(source, one.line), ranks,
                                   one.nodes, one.nodes == 1 ? "" : "s", nodes,
                                   is_given ? "correct --nodes or --ranks-per-node" : kTwoStudies));
  });
}

// If a source names the node of each rank, flags can only confirm it. Nodes may have different numbers of
// ranks.
void require_given(const std::vector<std::string>& rank_nodes, const Given& given, const std::string& name) {
  std::map<std::string, int64_t> ranks_on;
  for (const std::string& node : rank_nodes) ++ranks_on[node];
  const auto nodes = std::ssize(ranks_on);
  if (given.nodes > 0 && given.nodes != nodes)
    throw UsageError(fmt::format("{}: {} ranks on {} node{}, not on {}; correct --nodes or leave it out",
                                 name, rank_nodes.size(), nodes, nodes == 1 ? "" : "s", given.nodes));
  for (const auto& [node, ranks] : ranks_on)
    if (given.ranks_per_node > 0 && given.ranks_per_node != ranks)
      throw UsageError(fmt::format("{}: {} rank{} on {}, not {}; correct --ranks-per-node or leave it out",
                                   name, ranks, ranks == 1 ? "" : "s", node, given.ranks_per_node));
}

}  // namespace

int64_t most_ranks(const std::vector<Read>& all) {
  int64_t most = 0;
  for_each_measured(all,
                    [&](const Source&, const Measured&, int64_t ranks) { most = std::max(most, ranks); });
  return most;
}

// A source that names the node of every rank of the largest record decides, and flags can only confirm it.
// Otherwise the flags say how many ranks each node has, or else the rows do. Nodes without names are
// numbered.
std::vector<std::string> placement_of(const std::vector<Read>& all, const Given& given) {
  const int64_t world = most_ranks(all);
  for (const auto& [source, contents] : all)
    if (std::ssize(contents.rank_nodes) == world) {
      require_given(contents.rank_nodes, given, source->name);
      require_nodes(contents.rank_nodes, all, false);
      return contents.rank_nodes;
    }
  const std::optional<int64_t> from_flags = given_per_node(all, given);
  const std::optional<int64_t> each = from_flags ? from_flags : said_per_node(all);
  if (!each) return {};
  std::vector<std::string> rank_nodes = numbered(world, *each);
  require_nodes(rank_nodes, all, from_flags.has_value());
  return rank_nodes;
}

// All sources must name the same set of devices. If there are several kinds, one source must say which rank
// has which.
std::vector<std::string> devices_of(const std::vector<Read>& all, const Given& given, int64_t ranks) {
  std::vector<std::string> devices;
  std::set<std::string> names;
  const auto text = [](const std::set<std::string>& set) { return fmt::format("{}", fmt::join(set, " + ")); };
  for (const auto& [source, contents] : all) {
    std::set<std::string> said(contents.devices.begin(), contents.devices.end());
    if (said.empty()) said = {given.device};
    if (!given.device.empty() && said != std::set{given.device})
      throw UsageError(fmt::format("{}: it ran on {}, not on {} as --device says; leave that out",
                                   source->name, text(said), given.device));
    if (!names.empty() && said != names)
      throw UsageError(
          fmt::format("{}: it ran on {}, others on {}; a study is of one machine: import them into two",
                      source->name, text(said), text(names)));
    names = said;
    if (std::ssize(contents.devices) == ranks) devices = contents.devices;
  }
  if (devices.empty() && names.size() > 1)
    throw UsageError(fmt::format("{} of {} ranks is not said for each rank", text(names), ranks));
  return devices.empty() ? std::vector(static_cast<size_t>(ranks), *names.begin()) : devices;
}

}  // namespace shardmark::imports
