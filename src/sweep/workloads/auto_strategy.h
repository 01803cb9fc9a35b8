// Finds the strategy that `auto` of a point resolves to on the given ranks and network.
#pragma once

#include <map>

#include "comm/communicator.h"
#include "schema/point.h"
#include "strategies/auto.h"

namespace shardmark {

// What an operation costs on a network. It is for decisions (strategy `auto`), not for reports.
struct Probe {
  strategies::ProbedLink all;
  strategies::ProbedLink node;  // among the ranks of a node
  // 0 if there is one node only, or if the nodes do not hold equally many consecutive ranks.
  int64_t ranks_per_node = 0;
};

using ProbeCache = std::map<std::string, Probe>;  // by transport and number of ranks

// The point with `auto` resolved, and the reason as text, which is empty if nothing was chosen.
struct Settled {
  Point point;
  std::string reason;
  // Expected communication time of its step, from the probe of the network; 0: unknown.
  double communication_s = 0;
};

bool needs_settling(const Point& point);  // whether its strategy is `auto`

// Resolves `auto`; the result is the same on all ranks. Collective over `group`, which holds the ranks of
// `comm`. The network is probed once for each transport and number of ranks.
Settled settle_strategy(const Point& point, const HostGroup& group, Communicator& comm, ProbeCache& probes);

}  // namespace shardmark
