// Gathers the facts of all ranks once, and examines them on rank 0.
#include "cli/run/preflight.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/log.h"
#include "base/revision.h"
#include "doctor/load.h"
#include "doctor/machine/facts.h"
#include "doctor/machine/load.h"
#include "doctor/placement.h"
#include "doctor/process_groups.h"
#include "schema/file.h"
#include "schema/study.h"
#include "sweep/environment.h"

namespace shardmark {
namespace {

std::map<std::string, std::string> variables() {
  std::map<std::string, std::string> found;
  for (const char* name : doctor::kVariables)
    if (const char* value = std::getenv(name)) found[name] = value;
  return found;
}

// Whether OpenMP pins threads itself. It uses the processors that it saw when it started, so ranks must not
// be bound afterwards.
bool threads_are_pinned() {
  const char* pins = std::getenv("OMP_PROC_BIND");
  if (pins != nullptr) return std::string(pins) != "false" && std::string(pins) != "FALSE";
  return std::getenv("OMP_PLACES") != nullptr || std::getenv("GOMP_CPU_AFFINITY") != nullptr;
}

machine::Bound bind(const WorldFlags& flags, const machine::Topology& topology, const HostGroup& world,
                    at::Device device) {
  // This is collective, so it comes before the decision, which need not be the same on all ranks.
  const HostGroup node = world.split(world.first_rank_on_node(), world.rank());
  if (flags.bind == "none" || threads_are_pinned()) return {"nobody", /*refused=*/true};
  return machine::bind_ranks(topology, node, device);
}

}  // namespace

Preflight gather_facts(const WorldFlags& flags, const Ranks& ranks, const std::string& output,
                       bool judges_nodes) {
  const MpiSession& session = *ranks.session;
  const HostGroup& world = *ranks.world;
  Preflight found;
  found.device = choose_device(flags, session, world, judges_nodes);
  const machine::Topology topology;
  machine::FactsOf given;
  given.device = found.device;
  given.gpus_refused = flags.device == "cpu";
  given.gpus_wanted = flags.device == "cuda";
  given.bound = bind(flags, topology, world, found.device);
  // Threads are set after the binding, because their number depends on the cores that the rank may use.
  together(world, [&] { set_threads(flags, session.local_size(), found.device); });
  given.threads = at::get_num_threads();
  given.revision = revision();
  given.output = output.empty() ? "" : directory_of(output);
  given.variables = variables();
  doctor::RankFacts own = machine::facts_of_rank(topology, world, session, given);
  own.load = machine::measure_load(world, session);
  found.ranks = machine::gather_facts(world, own);
  if (world.rank() == 0) found.findings = doctor::examine(found.ranks);
  return found;
}

Preflight preflight(const WorldFlags& flags, const Ranks& ranks, const std::string& output,
                    bool judges_nodes) {
  Preflight found = gather_facts(flags, ranks, output, judges_nodes);
  together(*ranks.world, [&] {
    if (const std::string stopper = found.stopper();
        !stopper.empty() && (!judges_nodes || found.is_stopped_for_all()))
      throw UsageError(stopper);
  });
  return found;
}

std::string Preflight::stopper() const {
  for (const doctor::Finding& finding : findings)
    if (finding.severity == doctor::Severity::error) return to_text(finding);
  return "";
}

bool Preflight::is_stopped_for_all() const {
  const auto hosts_of = [&](const auto& numbers) {
    std::set<std::string> hosts;
    for (const int rank : numbers) hosts.insert(ranks[static_cast<size_t>(rank)].host);
    return hosts.size();
  };
  std::set<std::string> all;
  for (const doctor::RankFacts& rank : ranks) all.insert(rank.host);
  return std::any_of(findings.begin(), findings.end(), [&](const doctor::Finding& finding) {
    return finding.severity == doctor::Severity::error &&
           (finding.is_of_job || hosts_of(finding.ranks) == all.size());
  });
}

void Preflight::look_at_layouts(const std::vector<Point>& points) {
  if (ranks.empty()) return;
  const doctor::Findings found = doctor::check_process_groups(ranks, points);
  findings.insert(findings.end(), found.begin(), found.end());
}

void Preflight::print_warnings(bool quiet) const {
  for (const doctor::Finding& finding : findings)
    if (finding.severity == doctor::Severity::warning) log_warning(to_text(finding));
  if (!ranks.empty() && !quiet) log_line(doctor::placement_line(ranks));
}

void Preflight::keep_in(Environment& environment) const {
  auto& kept = (*environment.facts)["preflight"] = nlohmann::ordered_json::array();
  for (const doctor::Finding& finding : findings) {
    kept.push_back({{"severity", to_text(finding.severity)}, {"text", to_text(finding)}});
    if (finding.check == doctor::kLoadCheck) (*environment.facts)[kBusyFact] = finding.what;
  }
  (*environment.facts)["load"] = to_json(doctor::node_loads(ranks));
  (*environment.facts)["placement"] = doctor::placement_json(ranks);
}

}  // namespace shardmark
