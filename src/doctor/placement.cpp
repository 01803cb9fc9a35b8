// Ranks with equal placement are listed once, so that the text does not grow with the number of ranks.
#include "doctor/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "doctor/groups.h"

namespace shardmark::doctor {
namespace {

std::string seat_of(const RankFacts& rank) {
  return fmt::format("{}|{}|{}|{}", rank.cpu.allowed, rank.cpu.numa, rank.gpu.pci, rank.cpu.bound_by);
}

// Whether no two ranks of the node may run on the same processor.
bool own_cores(const RankGroup& node) {
  std::set<int> taken;
  for (const RankFacts* rank : node)
    for (int cpu : numbers_from(rank->cpu.allowed))
      if (!taken.insert(cpu).second) return false;
  return true;
}

std::string spread_text(int64_t least, int64_t most, const char* noun) {
  return least == most ? counted(least, noun) : fmt::format("{} to {}", least, counted(most, noun));
}

}  // namespace

std::string placement_line(const World& world) {
  const auto nodes = nodes_of(world);
  int64_t least = world.front().cpu.cores, most = least;
  bool own = true, on_gpus = true, near = true;
  Numbers numa;
  for (const RankFacts& rank : world) {
    least = std::min(least, rank.cpu.cores);
    most = std::max(most, rank.cpu.cores);
    on_gpus = on_gpus && rank.on_gpu();
    const Numbers mine = numbers_from(rank.cpu.numa);
    near = near && std::find(mine.begin(), mine.end(), rank.gpu.numa) != mine.end();
    numa.insert(numa.end(), mine.begin(), mine.end());
  }
  for (const auto& [name, ranks] : nodes) own = own && own_cores(ranks);
  numa = numbers_from(ranges_text(numa));  // each once
  std::string line = fmt::format("{} on {}, ", counted(static_cast<int64_t>(world.size()), "rank"),
                                 counted(static_cast<int64_t>(nodes.size()), "node"));
  if (world.size() == 1)
    line += "on " + counted(least, "core");
  else
    line += own ? fmt::format("each on {} of its own", spread_text(least, most, "core"))
                : fmt::format("each anywhere on {}", spread_text(least, most, "core"));
  if (on_gpus) line += fmt::format(" and a GPU{}", near ? " of the same NUMA node" : "");
  return line + fmt::format("; NUMA node{} {}", numa.size() == 1 ? "" : "s", ranges_text(numa));
}

nlohmann::ordered_json placement_json(const World& world) {
  std::vector<RankGroup> seats;
  std::map<std::string, size_t> known;
  for (const RankFacts& rank : world) {
    const size_t seat = known.emplace(seat_of(rank), seats.size()).first->second;
    if (seat == seats.size()) seats.emplace_back();
    seats[seat].push_back(&rank);
  }
  auto entries = nlohmann::ordered_json::array();
  for (const RankGroup& ranks : seats) {
    Numbers numbers;
    for (const RankFacts* rank : ranks) numbers.push_back(static_cast<int>(rank->rank));
    const RankFacts& one = *ranks.front();
    entries.push_back({{"ranks", ranges_text(numbers)},
                       {"cores", one.cpu.allowed},
                       {"numa", one.cpu.numa},
                       {"gpu", one.gpu.pci},
                       {"bound_by", one.cpu.bound_by}});
  }
  return entries;
}

std::vector<NodePlacement> node_placements(const World& world) {
  std::vector<RankGroup> nodes;
  std::map<std::string, size_t> known;
  for (const RankFacts& rank : world) {
    const size_t node = known.emplace(rank.host + "\n" + rank.machine, nodes.size()).first->second;
    if (node == nodes.size()) nodes.emplace_back();
    nodes[node].push_back(&rank);
  }
  std::vector<NodePlacement> found;
  std::map<std::string, size_t> alike;
  for (const RankGroup& ranks : nodes) {
    std::string form;
    for (const RankFacts* rank : ranks) form += seat_of(*rank) + "\n";
    const size_t layout = alike.emplace(form, found.size()).first->second;
    if (layout == found.size()) found.push_back({{}, ranks});
    found[layout].nodes.push_back(ranks.front()->host);
  }
  return found;
}

}  // namespace shardmark::doctor
