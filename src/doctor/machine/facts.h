// Gathers the facts of all ranks to rank 0.
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

// Binds each rank of a node to cores of its own, near its GPU (doctor/binding.h). Call it before the rank
// creates threads; existing threads (MPI's) are moved, too. Collective over the ranks of `node`.
Bound bind_ranks(const Topology& topology, const HostGroup& node, at::Device device);

struct FactsOf {
  at::Device device{at::kCPU};
  bool gpus_refused = false;  // the user wants CPU ranks
  bool gpus_wanted = false;   // the user wants GPUs only
  Bound bound;
  int threads = 1;
  std::string revision;                          // shardmark's revision
  std::string output;                            // directory of studies, which rank 0 writes
  std::map<std::string, std::string> variables;  // those of doctor::kVariables that are set
};

doctor::RankFacts facts_of_rank(const Topology& topology, const HostGroup& world, const MpiSession& session,
                                const FactsOf& given);

// Returns one entry per rank on rank 0, and nothing elsewhere. Collective.
std::vector<doctor::RankFacts> gather_facts(const HostGroup& world, const doctor::RankFacts& own);

}  // namespace shardmark::machine
