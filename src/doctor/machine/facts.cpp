// Assembles the facts from their sources, and binds ranks.
#include "doctor/machine/facts.h"

#include <unistd.h>

#include "base/node.h"
#include "comm/host_group.h"
#include "device/device.h"
#include "device/nvml.h"
#include "doctor/binding.h"
#include "doctor/machine/gpu.h"
#include "doctor/machine/host.h"
#include "doctor/machine/versions.h"

namespace shardmark::machine {
namespace {

doctor::CpuFacts cpu_facts(const Topology& topology, const FactsOf& given) {
  const Numbers allowed = topology.allowed();
  doctor::CpuFacts facts;
  facts.name = device_name(at::kCPU);
  facts.allowed = ranges_text(allowed);
  facts.numa = ranges_text(topology.numa_of(allowed));
  facts.cores = topology.num_cores(allowed);
  facts.node_cores = static_cast<int64_t>(topology.cores().size());
  facts.node_numa = topology.num_numa();
  facts.threads = given.threads;
  facts.quota = granted_cores();
  facts.bound_by = given.bound.by;
  return facts;
}

// Parses what the ranks of a node told its first rank: where each may run, and where its GPU is.
std::vector<doctor::Seat> seats_of(const std::vector<std::string>& texts) {
  std::vector<doctor::Seat> seats;
  for (const std::string& text : texts) {
    const auto seat = nlohmann::json::parse(text);
    seats.push_back({numbers_from(seat.at(0).get<std::string>()), seat.at(1).get<int>()});
  }
  return seats;
}

}  // namespace

// The ranks of a node tell its first rank where they may run and where their GPUs are. The first rank
// assigns the cores of all, because only it knows all of them, and broadcasts the result. Each rank then
// binds itself.
Bound bind_ranks(const Topology& topology, const HostGroup& node, at::Device device) {
  const nlohmann::json seat = {ranges_text(topology.allowed()), numa_of_pci(pci_bus_id(device))};
  const auto seats = seats_of(node.gather(seat.dump()));
  // The answer of the node's first rank: who binds, and the cores of each rank.
  nlohmann::json told;
  if (node.rank() == 0) {
    const auto binding = doctor::assign_cores(topology.cores(), seats, granted_cores());
    told["by"] = binding.by_launcher ? "launcher" : "nobody";
    told["cores"] = nlohmann::json::array();
    for (const Numbers& cpus : binding.cpus) told["cores"].push_back(ranges_text(cpus));
  }
  told = nlohmann::json::parse(node.broadcast(told.dump(), 0));
  if (told["cores"].empty()) return {told["by"].get<std::string>()};
  const auto own = told["cores"].at(static_cast<size_t>(node.rank())).get<std::string>();
  return {topology.bind(numbers_from(own)) ? "shardmark" : "nobody"};
}

doctor::RankFacts facts_of_rank(const Topology& topology, const HostGroup& world, const MpiSession& session,
                                const FactsOf& given) {
  doctor::RankFacts facts;
  facts.host = host_name();
  facts.machine = kernel_id();
  facts.pid = getpid();
  facts.rank = world.rank();
  facts.world_ranks = world.size();
  facts.promised_ranks = promised_ranks();
  facts.local_rank = session.local_rank();
  facts.local_ranks = session.local_size();
  facts.binding_refused = given.bound.refused;
  facts.gpus_refused = given.gpus_refused;
  facts.gpus_wanted = given.gpus_wanted;
  facts.cpu = cpu_facts(topology, given);
  facts.gpu = gpu_facts(given.device);
  facts.versions = versions();
  facts.versions.driver = add_nvml(facts.gpu, Nvml::kLibrary);
  facts.versions.shardmark = given.revision;
  facts.node = host_facts(world.rank() == 0 ? given.output : "");
  facts.variables = given.variables;
  return facts;
}

std::vector<doctor::RankFacts> gather_facts(const HostGroup& world, const doctor::RankFacts& own) {
  std::vector<doctor::RankFacts> facts;
  // Folder names and variables may contain any bytes, so invalid UTF-8 is replaced.
  for (const std::string& text :
       world.gather(nlohmann::json(own).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)))
    facts.push_back(nlohmann::json::parse(text).get<doctor::RankFacts>());
  return facts;
}

}  // namespace shardmark::machine
