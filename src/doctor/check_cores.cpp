// Checks the binding: on which cores a rank may run, compared with what it needs and where its GPU is.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "doctor/groups.h"

namespace shardmark::doctor {
namespace {

// The physical cores of a node that its ranks may use, limited by the control group's quota.
int64_t usable_cores(const RankFacts& rank) {
  const CpuFacts& cpu = rank.cpu;
  const auto quota = static_cast<int64_t>(std::ceil(cpu.quota));
  return quota > 0 && quota < cpu.node_cores ? quota : cpu.node_cores;
}

constexpr auto kGiveCores =
    "mpirun --map-by slot:PE=CORES --bind-to core, srun --cpus-per-task=CORES, or no "
    "binding by the launcher (mpirun --bind-to none, srun --cpu-bind=none): shardmark then binds";

struct Troubles {
  Affected crowded;  // more ranks than cores
  // Several ranks share the same few cores, although the node has enough.
  Affected crammed;
  Affected squeezed;  // a rank has more threads than cores
  // The node's ranks have more threads than the control group grants processor time.
  Affected rationed;
  Affected unbound;  // could have cores of their own
  Affected idle;     // bound to less than half of the node
  Affected refused;  // unbound because the user asked for it
  int64_t shared_cores = 0, cores = 0, most_threads = 0, used = 0;
  bool by_launcher = false;  // squeezed by the launcher's binding
  double quota = 0;
};

// Examines ranks of a node that may run on exactly the same processors. A node with more ranks than cores is
// not examined: check_shares() reports it as crowded, and everything else would follow from that.
void look_at(const RankGroup& alike, int64_t on_node, Troubles& t) {
  const CpuFacts& cpu = alike.front()->cpu;
  const auto ranks = static_cast<int64_t>(alike.size());
  if (cpu.cores == kUnknown || cpu.node_cores == kUnknown || on_node > usable_cores(*alike.front())) return;
  if (ranks > cpu.cores) {
    t.crammed.add(alike, ranks);
    t.shared_cores = cpu.cores;
    t.cores = cpu.node_cores;
    return;
  }
  // Hardware threads count here.
  const auto processors = static_cast<int64_t>(numbers_from(cpu.allowed).size());
  for (const RankFacts* rank : alike) {
    if (rank->cpu.threads <= processors) continue;
    t.squeezed.add(*rank, processors);
    t.most_threads = std::max(t.most_threads, rank->cpu.threads);
    t.by_launcher = t.by_launcher || rank->cpu.bound_by == "launcher";
  }
  if (ranks > 1) (alike.front()->binding_refused ? t.refused : t.unbound).add(alike, cpu.cores);
}

// Finds cores that no rank may use: some launchers give each rank one core (mpirun does for two ranks) and
// leave the rest idle.
void look_for_idle(const RankGroup& node, Troubles& t) {
  int64_t used = 0;
  std::set<std::string> seen;
  for (const RankFacts* rank : node)
    if (seen.insert(rank->cpu.allowed).second) used += rank->cpu.cores;
  if (node.front()->cpu.bound_by != "launcher" || 2 * used >= usable_cores(*node.front())) return;
  t.idle.add(node);
  t.used = used;
  t.cores = usable_cores(*node.front());
}

void check_shares(const World& world, Findings& findings) {
  Troubles t;
  for (const auto& [name, ranks] : nodes_of(world)) {
    const auto on_node = static_cast<int64_t>(ranks.size());
    const int64_t cores = usable_cores(*ranks.front());
    if (cores != kUnknown && on_node > cores) {
      t.crowded.add(ranks, on_node);
      t.cores = cores;
    }
    int64_t threads = 0;
    for (const RankFacts* rank : ranks) threads += rank->cpu.threads;
    const double quota = ranks.front()->cpu.quota;
    if (quota > 0 && on_node <= cores && static_cast<double>(threads) > quota) {
      t.rationed.add(ranks, threads);
      t.quota = quota;
    }
    look_for_idle(ranks, t);
    std::map<std::string, RankGroup> alike;
    for (const RankFacts* rank : ranks) alike[rank->cpu.allowed].push_back(rank);
    for (const auto& [allowed, group] : alike) look_at(group, on_node, t);
  }
  t.crowded.report(findings, Severity::warning,
                   fmt::format("{} ranks share {} cores of {}", t.crowded.most(), t.cores, t.crowded.hosts()),
                   "start at most one rank per core");
  t.crammed.report(findings, Severity::warning,
                   fmt::format("{} ranks are bound to the same {} core(s) of {}, of {}", t.crammed.most(),
                               t.shared_cores, t.crammed.hosts(), t.cores),
                   kGiveCores);
  t.squeezed.report(
      findings, Severity::warning,
      fmt::format("a rank computes with {} threads, but may run on {} processor(s)", t.most_threads,
                  t.squeezed.least()),
      t.by_launcher ? kGiveCores : "fewer --threads (or OMP_NUM_THREADS), or fewer ranks on a node");
  t.rationed.report(findings, Severity::warning,
                    fmt::format("{} threads of the ranks of {} share the {:g} cores that the cgroup grants",
                                t.rationed.most(), t.rationed.hosts(), t.quota),
                    "fewer --threads, or a larger quota (docker run --cpus, sbatch --cpus-per-task)");
  t.unbound.report(findings, Severity::warning,
                   fmt::format("ranks are not bound and share the same {} cores of {}", t.unbound.most(),
                               t.unbound.hosts()),
                   kGiveCores);
  t.idle.report(findings, Severity::note,
                fmt::format("ranks are bound to {} of {} cores of {}", t.used, t.cores, t.idle.hosts()),
                kGiveCores);
  t.refused.report(findings, Severity::note,
                   fmt::format("ranks are not bound and share the same {} cores, as requested by --bind none",
                               t.refused.most()),
                   "--bind auto binds each rank to cores of its own");
}

void check_numa(const World& world, Findings& findings) {
  Affected far;
  std::string example;
  for (const RankFacts& rank : world) {
    if (!rank.on_gpu() || rank.gpu.numa == kUnknown || rank.cpu.numa.empty()) continue;
    const Numbers own = numbers_from(rank.cpu.numa);
    if (std::find(own.begin(), own.end(), rank.gpu.numa) != own.end()) continue;
    far.add(rank);
    if (example.empty())
      example = fmt::format("rank {}: cores of NUMA node {}, GPU {} on {}", rank.rank, rank.cpu.numa,
                            rank.gpu.pci, rank.gpu.numa);
  }
  far.report(
      findings, Severity::warning, fmt::format("cores far from the GPU ({})", example),
      "srun --gpu-bind=none --cpu-bind=none or mpirun --bind-to none: shardmark then binds near the GPU");
}

}  // namespace

void check_cores(const World& world, Findings& findings) {
  check_shares(world, findings);
  check_numa(world, findings);
}

}  // namespace shardmark::doctor
