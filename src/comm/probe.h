// What an operation costs on the network at hand, measured in well under two seconds: for decisions, not for
// reports.
#pragma once

#include "comm/communicator.h"
#include "strategies/auto_choice.h"

namespace shardmark {

struct Probe {
  strategies::ProbedLink all;
  strategies::ProbedLink node;  // among the ranks of a node
  int64_t ranks_per_node = 0;   // 0: one node, or nodes that do not hold equally many neighbouring ranks
};

// By all-reduces; the same on all ranks. Collective; group: of the same ranks.
Probe probe(const HostGroup& group, Communicator& comm);

}  // namespace shardmark
