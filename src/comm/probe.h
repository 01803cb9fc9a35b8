// Measures what an operation costs on this network, in well under two seconds. The result is for decisions
// (strategy `auto`), not for reports.
#pragma once

#include "comm/communicator.h"
#include "strategies/auto_choice.h"

namespace shardmark {

struct Probe {
  strategies::ProbedLink all;
  strategies::ProbedLink node;  // among the ranks of a node
  // 0 if there is one node only, or if the nodes do not hold equally many consecutive ranks.
  int64_t ranks_per_node = 0;
};

// Measures with all-reduces; all ranks get the same result. Collective; `group` must have the ranks of
// `comm`.
Probe probe(const HostGroup& group, Communicator& comm);

}  // namespace shardmark
