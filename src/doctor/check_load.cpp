// Finds other processes on the processors of the ranks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/ranges.h"
#include "doctor/groups.h"
#include "doctor/load.h"

namespace shardmark::doctor {
namespace {

// In half a second a processor's clock has 50 ticks, and the daemons of an idle node take one or two. Five
// mean that somebody is working.
constexpr double kLeast = 0.1;
// Ranks on CPUs share memory bandwidth and the processor's clock with processes on other cores. If a tenth of
// the cores is busy, both change; how much that slows a step is not known.
constexpr double kBusyShare = 0.1;

struct Use {
  double others = 0, stolen = 0;
};

using UseOfProcessors = std::map<int64_t, ProcessorUse>;

// Adds up the use of some processors. Returns nothing if one of them was not measured, because a container
// may show others than it has.
std::optional<Use> use_of(const std::set<int>& processors, const UseOfProcessors& measured, double own) {
  Use use;
  for (const int processor : processors) {
    const auto found = measured.find(processor);
    if (found == measured.end()) return {};
    use.others += found->second.busy;
    use.stolen += found->second.stolen;
  }
  use.others = std::max(use.others - own, 0.0);
  return use;
}

// For ranks of a node that may run on exactly the same processors: do they get fewer than they have threads?
bool lack_processors(const RankGroup& alike, const UseOfProcessors& measured) {
  const Numbers allowed = numbers_from(alike.front()->cpu.allowed);
  double own = 0;
  int64_t threads = 0;
  for (const RankFacts* rank : alike) {
    own += rank->load.own;
    threads += rank->cpu.threads;
  }
  const auto use = use_of({allowed.begin(), allowed.end()}, measured, own);
  // The ranks lack processors if what others use and their own threads together are more than their physical
  // cores, or more than their logical processors if the cores are not known.
  if (!use || use->others + use->stolen < kLeast) return false;
  const int64_t cores =
      alike.front()->cpu.cores > 0 ? alike.front()->cpu.cores : static_cast<int64_t>(allowed.size());
  return use->others + use->stolen + static_cast<double>(threads) > static_cast<double>(cores);
}

std::optional<NodeLoad> load_of(const RankGroup& ranks) {
  UseOfProcessors measured;
  NodeLoad load;
  load.node = ranks.front()->host;
  double own = 0;
  std::set<int> processors;
  std::map<std::string, RankGroup> alike;
  for (const RankFacts* rank : ranks) {
    own += rank->load.own;
    load.average = std::max(load.average, rank->load.average);
    for (const ProcessorUse& use : rank->load.processors) measured.insert({use.processor, use});
    const Numbers allowed = numbers_from(rank->cpu.allowed);
    processors.insert(allowed.begin(), allowed.end());
    alike[rank->cpu.allowed].push_back(rank);
  }
  const auto use = use_of(processors, measured, own);
  if (!use || processors.empty()) return {};
  load.processors = std::ssize(processors);
  load.others = use->others;
  load.stolen = use->stolen;
  int64_t cores = 0;
  for (const auto& [allowed, group] : alike) {
    cores += group.front()->cpu.cores;
    // All ranks are disturbed if they lack processors. Ranks on CPUs are also disturbed if enough of the
    // processors of all ranks of the node are busy: see kBusyShare.
    const bool share_memory =
        !group.front()->on_gpu() &&
        load.taken() >= std::max(kLeast, kBusyShare * static_cast<double>(load.processors));
    if (!share_memory && !lack_processors(group, measured)) continue;
    for (const RankFacts* rank : group) load.disturbed.push_back(static_cast<int>(rank->rank));
  }
  load.are_cores = cores >= load.processors;
  return load;
}

}  // namespace

std::vector<NodeLoad> node_loads(const World& world) {
  std::vector<NodeLoad> loads;
  for (const auto& [name, ranks] : nodes_of(world))
    if (const auto load = load_of(ranks)) loads.push_back(*load);
  return loads;
}

std::string to_text(const NodeLoad& load) {
  constexpr double kShown = 0.05;  // less is printed as 0.0
  std::string text;
  if (load.others >= kShown || load.stolen < kShown)
    text = fmt::format("other processes use {:.1f}", load.others);
  if (load.stolen >= kShown)
    text += fmt::format("{}other virtual machines take {:.1f}", text.empty() ? "" : " and ", load.stolen);
  text += fmt::format(" of {} {}{}", load.processors, load.are_cores ? "core" : "hardware thread",
                      load.processors == 1 ? "" : "s");
  if (load.average != kUnknown) text += fmt::format(" (load {:.1f})", load.average);
  return text;
}

nlohmann::ordered_json to_json(const std::vector<NodeLoad>& loads) {
  auto all = nlohmann::ordered_json::array();
  for (const NodeLoad& load : loads) {
    nlohmann::ordered_json one = {{"node", load.node},
                                  {load.are_cores ? "cores" : "hardware_threads", load.processors},
                                  {"others", load.others},
                                  {"stolen", load.stolen}};
    if (load.average != kUnknown) one["average"] = load.average;
    all.push_back(std::move(one));
  }
  return all;
}

void check_load(const World& world, Findings& findings) {
  Numbers ranks;
  const NodeLoad* worst = nullptr;
  size_t num_nodes = 0;
  const std::vector<NodeLoad> loads = node_loads(world);
  for (const NodeLoad& load : loads) {
    if (load.disturbed.empty()) continue;
    ++num_nodes;
    ranks.insert(ranks.end(), load.disturbed.begin(), load.disturbed.end());
    const auto share = [](const NodeLoad& one) { return one.taken() / static_cast<double>(one.processors); };
    if (worst == nullptr || share(load) > share(*worst)) worst = &load;
  }
  if (worst == nullptr) return;
  std::string where;
  if (num_nodes > 1)
    where = fmt::format("on {} nodes, most on {}: ", num_nodes, worst->node);
  else if (loads.size() > 1)
    where = "on " + worst->node + ": ";
  findings.push_back({Severity::warning, ranks,
                      where + to_text(*worst) + ": times will be too long by an unknown factor",
                      "wait until they have ended, end them, or take nodes for this job alone (sbatch "
                      "--exclusive)"});
}

}  // namespace shardmark::doctor
