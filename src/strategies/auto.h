// How strategy `auto` decides: of a few candidates it keeps those that fit into a rank's memory, and takes
// the one whose operations take the least time on the network as measured. The decision is a pure function.
// Candidates carry what they are expected to need, so that `plan` can list them and a study can say why.
#pragma once

#include <string>
#include <vector>

#include "strategies/strategy.h"

namespace shardmark::strategies {

// The time of an operation that moves b ring bytes is latency_s + b / bytes_per_s.
struct ProbedLink {
  double latency_s = 0;
  double bytes_per_s = 0;  // 0: unknown or a single rank, and operations take no time
};

// The inputs of a decision, which must be the same on all ranks.
struct DecisionInputs {
  double memory_bytes = 0;      // of a rank; 0: unknown, everything fits
  double activation_bytes = 0;  // of a rank, estimated
  int64_t ranks_per_node = 0;   // 0: all ranks on one node, or nodes of different sizes
  ProbedLink all = {};          // among all ranks
  ProbedLink node = {};         // among the ranks of a node, if ranks_per_node > 0
};

struct Candidate {
  Choice strategy;         // resolved
  Cost cost;               // of a rank
  double needed_bytes;     // of a rank's device, with activations
  double communication_s;  // per step, whether it overlaps or not; 0: unknown
  bool fits;
};

struct Decision {
  std::vector<Candidate> candidates;  // all that are possible, the simplest first
  size_t chosen = 0;
  std::string reason;  // in words
  const Candidate& choice() const { return candidates[chosen]; }
};

// Ignores input.options. If no candidate fits, it takes the one that needs the least memory.
Decision decide(const StepInput& input, const DecisionInputs& inputs);

}  // namespace shardmark::strategies
