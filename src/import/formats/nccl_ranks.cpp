// Reads the lines that list ranks, and derives the placement from them: Note [Nodes that share a host name].
#include "import/formats/nccl_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "base/value.h"

namespace shardmark::imports {
namespace {

// Rejects a line that another one interrupts, such as "NVIDIA A100node-a:2:2 [1] NCCL INFO Bootstrap ...".
bool is_device_name(std::string_view name) {
  constexpr size_t kLongest = 100;
  return name.size() <= kLongest && name.find_first_of("#[]<>|=\"") == std::string_view::npos &&
         name.find("NCCL ") == std::string_view::npos && printable(name, "") == name;
}

// Formats up to three ranks, and the number of the others.
std::string few(const std::vector<int64_t>& ranks) {
  const auto first = ranks.begin(), last = first + std::min<std::ptrdiff_t>(std::ssize(ranks), 3);
  return fmt::format("{}{}", fmt::join(first, last, ", "),
                     std::ssize(ranks) > 3 ? fmt::format(" and {} more", ranks.size() - 3) : "");
}

void require_each_once(const std::vector<NcclRank>& listed, int64_t per_listed) {
  std::vector<int64_t> missing;
  int64_t next = 0;
  for (size_t i = 0; i < listed.size(); ++i) {
    if (listed[i].group != 0)
      throw UsageError(listed[i].place +
                       "several groups of ranks ran at once, which a study cannot hold; leave the file out");
    if (i > 0 && listed[i].rank == listed[i - 1].rank)
      throw UsageError(
          fmt::format("{}rank {} is listed twice: {}", listed[i].place, listed[i].rank,
                      listed[i].rank == 0
                          ? "nccl-tests were built without MPI, so each process ran for itself, inside one "
                            "GPU; build them "
                            "with MPI=1 and measure again"
                          : "two programs wrote into this file, or a line came twice; leave the file out"));
    if (listed[i].host.empty())
      throw UsageError(
          fmt::format("{}it does not say on which host rank {} ran", listed[i].place, listed[i].rank));
    for (; next < listed[i].rank && missing.size() < 1000; next += per_listed) missing.push_back(next);
    next = listed[i].rank + per_listed;
  }
  if (!missing.empty())
    throw UsageError(
        fmt::format("{}rank {} is listed, but not rank {}: a line of the log was lost; ranks, nodes and "
                    "devices are known only where all are listed: leave the file out",
                    listed.back().place, listed.back().rank, few(missing)));
}

// A line that was cut inside the name of its device has a part of another rank's, which no other rank has.
void require_whole_names(const std::vector<NcclRank>& listed) {
  std::map<std::string, int64_t> ranks_of;  // [name]
  for (const NcclRank& one : listed) ++ranks_of[one.name];
  for (const NcclRank& one : listed) {
    const auto next = ranks_of.upper_bound(one.name);
    if (ranks_of[one.name] == 1 && next != ranks_of.end() && next->first.starts_with(one.name))
      throw UsageError(fmt::format(
          "{}the device of rank {} is called '{}', and that of others '{}': a line of the log was cut; mend "
          "the line, or leave the file out",
          one.place, one.rank, one.name, next->first));
  }
}

}  // namespace

bool lists_rank(const std::vector<std::string_view>& words) {
  const auto has = [&](std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  return (has("Pid") && (has("Rank") || has("device"))) ||
         (words.size() > 2 && words[0] == "#" && words[1] == "Rank" && is_number(words[2]));
}

NcclRank read_rank(const Line& line, const std::vector<std::string_view>& words, const std::string& where) {
  NcclRank one;
  one.place = where;
  size_t at = 0;
  const auto take = [&](std::string_view word) { return at < words.size() && words[at++] == word; };
  const auto take_text = [&](std::string& text) {
    if (at < words.size()) text = words[at++];
    return !text.empty();
  };
  const auto take_number = [&](std::string_view key, int64_t& number) {
    return take(key) && at < words.size() && (number = whole_in(words[at++])) >= 0;
  };
  int64_t process = 0, device = 0;
  const bool is_whole = take("#") && take_number("Rank", one.rank) &&
                        (at >= words.size() || words[at] != "Group" || take_number("Group", one.group)) &&
                        take_number("Pid", process) && take("on") && take_text(one.host) &&
                        take_number("device", device) && take_text(one.bus) && one.bus.starts_with('[') &&
                        one.bus.ends_with(']');
  one.device = std::to_string(device);
  one.name = fmt::format("{}", fmt::join(words.begin() + static_cast<std::ptrdiff_t>(at), words.end(), " "));
  if (is_whole && is_device_name(one.name)) return one;
  throw UsageError(fmt::format(
      "{}it lists a rank, but not as '# Rank N Group N Pid N on HOST device N [BUS] NAME': {}; without it "
      "ranks, nodes and devices are not known: mend the line, or leave the file out",
      where, quoted_line(std::string(line.text))));
}

// Note [Nodes that share a host name]
//
// A device may be listed twice for one host name. Either two ranks share it (NCCL refuses that unless
// NCCL_HOSTID differs), or two nodes have the same name, such as "localhost" or names that are cut at the
// first dot. Only the user knows. With two nodes, the k-th entry of a device belongs to the k-th node. If the
// device numbers are equal but the buses differ, each process sees only its own GPU (CUDA_VISIBLE_DEVICES),
// so it is one node unless a flag says otherwise.
NcclPlacement nccl_placement(std::vector<NcclRank> listed, const Given& given, int64_t per_listed) {
  NcclPlacement placement;
  if (std::ssize(listed) > values::kRanks.most / per_listed)
    throw UsageError(
        fmt::format("{}more than {} ranks, which no run has", listed.back().place, values::kRanks.most));
  std::stable_sort(listed.begin(), listed.end(),
                   [](const NcclRank& one, const NcclRank& other) { return one.rank < other.rank; });
  require_each_once(listed, per_listed);
  require_whole_names(listed);
  std::map<std::string, int64_t> nodes_of;  // by host name: the largest possible number of nodes
  std::map<std::pair<std::string, std::string>, int64_t> entries;  // number of entries by (host, device)
  std::map<std::tuple<std::string, std::string, std::string>, const NcclRank*> on_bus;
  std::vector<int64_t> number;  // of each entry among those of its device, from 1
  const NcclRank *twice = nullptr, *before = nullptr;
  for (const NcclRank& one : listed) {
    number.push_back(++entries[{one.host, one.device}]);
    int64_t& nodes = nodes_of[one.host];
    nodes = std::max(nodes, number.back());
    const auto [same, is_new] = on_bus.try_emplace({one.host, one.device, one.bus}, &one);
    if (is_new || twice != nullptr) continue;
    twice = &one;
    before = same->second;
  }
  const auto few_nodes = std::ssize(nodes_of);
  int64_t most_nodes = 0;
  for (const auto& [host, nodes] : nodes_of) most_nodes += nodes;
  const int64_t ranks = std::ssize(listed) * per_listed;
  const int64_t wanted = given.nodes > 0 ? given.nodes
                         : given.ranks_per_node > 0
                             ? (ranks + given.ranks_per_node - 1) / given.ranks_per_node
                             : 0;
  if (twice != nullptr && wanted != few_nodes && wanted != most_nodes)
    throw UsageError(fmt::format(
        "{}rank {} is on device {} of {}, as rank {} is: give --nodes {} if they share that GPU, or --nodes "
        "{} "
        "if nodes share that name",
        twice->place, twice->rank, twice->device, twice->host, before->rank, few_nodes, most_nodes));
  const bool are_apart = most_nodes > few_nodes && wanted == most_nodes;
  placement.nodes = are_apart ? most_nodes : few_nodes;
  placement.shares_devices = twice != nullptr && !are_apart;
  bool is_known = true;
  for (size_t i = 0; i < listed.size(); ++i) {
    const auto count = static_cast<size_t>(per_listed);
    const bool is_first = !are_apart || number[i] == 1;
    placement.hosts.insert(placement.hosts.end(), count,
                           is_first ? listed[i].host : fmt::format("{}#{}", listed[i].host, number[i]));
    placement.devices.insert(placement.devices.end(), count, listed[i].name);
    is_known &= !listed[i].name.empty();
  }
  if (!is_known) placement.devices.clear();
  return placement;
}

}  // namespace shardmark::imports
