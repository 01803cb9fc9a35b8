// Checks the placement: worlds that are too small, node names, and whether MPI uses shared memory inside
// nodes.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "doctor/groups.h"

namespace shardmark::doctor {
namespace {

void check_promise(const World& world, Findings& findings) {
  Affected alone;
  for (const RankFacts& rank : world)
    if (rank.promised_ranks > rank.world_ranks) alone.add(rank, rank.promised_ranks);
  alone.report(findings, Severity::error,
               fmt::format("the launcher started {} ranks, but MPI sees a world of {}", alone.most(),
                           world.front().world_ranks),
               "use the mpirun of the MPI that shardmark is linked with, or srun --mpi=pmix");
}

void check_names(const World& world, Findings& findings) {
  std::map<std::string, std::set<std::string>> machines, hosts;
  for (const RankFacts& rank : world) {
    machines[rank.host].insert(rank.machine);
    hosts[rank.machine].insert(rank.host);
  }
  for (const auto& [host, ids] : machines) {
    if (ids.size() == 1) continue;
    Affected named_alike;
    for (const RankFacts& rank : world)
      if (rank.host == host) named_alike.add(rank);
    named_alike.report(findings, Severity::warning,
                       fmt::format("{} machines have the host name {}", ids.size(), host),
                       "give each its own name (hostnamectl set-hostname), or reports mix them up");
  }
  for (const auto& [machine, names] : hosts) {
    if (names.size() == 1) continue;
    Affected together;
    for (const RankFacts& rank : world)
      if (rank.machine == machine) together.add(rank);
    together.report(
        findings, Severity::note,
        fmt::format("{} are one machine (containers or namespaces), and MPI treats them as {} nodes",
                    together.hosts(), names.size()),
        "start all ranks of a machine in one container, unless it stands for a cluster");
  }
}

std::set<std::string> words(const std::string& list) {
  std::set<std::string> found;
  std::istringstream stream(list);
  for (std::string word; std::getline(stream, word, ',');) found.insert(word);
  return found;
}

// The environment variable that keeps MPI from using shared memory; empty if there is none. Open MPI 4 calls
// the shared-memory transport vader, Open MPI 5 sm; UCX has several.
std::string shared_memory_excluded_by(const RankFacts& rank) {
  const auto value = [&](const char* name) {
    const auto found = rank.variables.find(name);
    return found == rank.variables.end() ? std::string() : found->second;
  };
  // A list that begins with ^ excludes what it names, and then one name of shared memory is enough to
  // exclude it. Any other list names all that may be used, and then shared memory is excluded if no name of
  // it is there.
  const auto lacks = [](const std::string& list, std::initializer_list<const char*> names) {
    if (list.empty()) return false;
    const bool excludes = list.front() == '^';
    const auto listed = words(excludes ? list.substr(1) : list);
    return excludes ==
           std::any_of(names.begin(), names.end(), [&](const char* n) { return listed.contains(n); });
  };
  const bool ucx = value("OMPI_MCA_pml") == "ucx";
  const char* variable = ucx ? "UCX_TLS" : "OMPI_MCA_btl";
  const bool excluded = ucx ? lacks(value(variable), {"all", "shm", "sm", "posix", "sysv", "mm"})
                            : lacks(value(variable), {"vader", "sm"});
  return excluded ? fmt::format("{}={}", variable, value(variable)) : "";
}

void check_shared_memory(const World& world, Findings& findings) {
  Affected apart;
  for (const auto& [name, ranks] : nodes_of(world))
    for (const RankFacts* rank : ranks)
      if (rank->local_ranks < static_cast<int64_t>(ranks.size())) apart.add(*rank, rank->local_ranks);
  apart.report(
      findings, Severity::warning,
      fmt::format("on {} MPI does not see that ranks share memory (it sees {} on a node)", apart.hosts(),
                  apart.least()),
      "start all ranks of a node in one container, or with --ipc=host; see also TMPDIR and /dev/shm");

  Affected excluded;
  std::string by;
  for (const RankFacts& rank : world) {
    if (rank.local_ranks < 2) continue;
    if (const auto variable = shared_memory_excluded_by(rank); !variable.empty()) {
      excluded.add(rank);
      by = variable;
    }
  }
  excluded.report(findings, Severity::warning,
                  fmt::format("{} keeps MPI from using shared memory in a node", by),
                  "leave it unset, or add the transport: vader in Open MPI 4, sm in Open MPI 5 and UCX");
}

void check_evenness(const World& world, Findings& findings) {
  std::map<size_t, int64_t> nodes_with;
  for (const auto& [name, ranks] : nodes_of(world)) ++nodes_with[ranks.size()];
  if (nodes_with.size() < 2) return;
  const auto usual = std::max_element(nodes_with.begin(), nodes_with.end(), [](const auto& a, const auto& b) {
                       return a.second < b.second;
                     })->first;
  Affected odd;
  for (const auto& [name, ranks] : nodes_of(world))
    if (ranks.size() != usual) odd.add(ranks, static_cast<int64_t>(ranks.size()));
  odd.report(findings, Severity::note,
             fmt::format("{} ranks on {}, {} on other nodes",
                         odd.least() == odd.most() ? std::to_string(odd.least())
                                                   : fmt::format("{} to {}", odd.least(), odd.most()),
                         odd.hosts(), usual),
             "use equally many ranks per node for comparable results: mpirun --map-by ppr:N:node, srun "
             "--ntasks-per-node=N");
}

}  // namespace

void check_world(const World& world, Findings& findings) {
  check_promise(world, findings);
  check_names(world, findings);
  check_shared_memory(world, findings);
  check_evenness(world, findings);
}

}  // namespace shardmark::doctor
