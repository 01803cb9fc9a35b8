// The facts of all ranks, in one gather to rank 0.
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <string>
#include <vector>

#include "comm/host_group.h"
#include "doctor/facts.h"
#include "doctor/machine/topology.h"

namespace shardmark::machine {

struct Bound {
  std::string by = "nobody";  // nobody, launcher, shardmark
  bool refused = false;       // the user wants no binding
};

// Gives each rank of a node cores of its own (doctor/binding.h), near its GPU, before it makes threads:
// threads that exist (MPI's) are moved too. Collective over the node's ranks, `node`.
Bound bind_ranks(const Topology& topology, const HostGroup& node, at::Device device);

struct FactsOf {
  at::Device device{at::kCPU};
  bool gpus_refused = false;  // the user wants CPU ranks
  bool gpus_wanted = false;   // the user wants GPUs, and nothing else
  Bound bound;
  int threads = 1;
  std::string revision;                          // of shardmark
  std::string output;                            // directory of studies; the lowest rank writes there
  std::map<std::string, std::string> variables;  // of doctor::kVariables, those that are set
};

doctor::RankFacts facts_of_rank(const Topology& topology, const HostGroup& world, const MpiSession& session,
                                const FactsOf& given);

// One per rank on rank 0, empty elsewhere. Collective.
std::vector<doctor::RankFacts> gather_facts(const HostGroup& world, const doctor::RankFacts& own);

}  // namespace shardmark::machine
