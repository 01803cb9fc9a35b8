// How strategy `auto` decides: of a few candidates those that fit into a rank's memory, and of these the one
// whose operations take least time over the network as measured. Pure; what each is expected to need stands
// in the candidates, so that plan can list them and a study can say why.
#pragma once

#include <string>
#include <vector>

#include "strategies/strategy.h"

namespace shardmark::strategies {

// Time of an operation that moves b ring bytes: latency_s + b / bytes_per_s.
struct ProbedLink {
  double latency_s = 0;
  double bytes_per_s = 0;  // 0: unknown, or one rank alone: nothing takes time
};

// Inputs of a decision, the same on all ranks.
struct DecisionInputs {
  double memory_bytes = 0;      // of a rank; 0: unknown, everything fits
  double activation_bytes = 0;  // of a rank, estimated
  int64_t ranks_per_node = 0;   // 0: all ranks on one node, or nodes of different sizes
  ProbedLink all = {};          // among all ranks
  ProbedLink node = {};         // among the ranks of a node; where ranks_per_node > 0
};

struct Candidate {
  Choice strategy;         // resolved
  Cost cost;               // of a rank
  double needed_bytes;     // of a rank's device, activations included
  double communication_s;  // of a step, overlapped or not; 0: unknown
  bool fits;
};

struct Decision {
  std::vector<Candidate> candidates;  // that are possible, the simplest first
  size_t chosen = 0;
  std::string reason;  // in words
  const Candidate& choice() const { return candidates[chosen]; }
};

// input.options are ignored. Where no candidate fits, the one that needs least.
Decision decide(const StepInput& input, const DecisionInputs& inputs);

}  // namespace shardmark::strategies
