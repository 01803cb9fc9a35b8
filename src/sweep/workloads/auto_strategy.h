// Finds the strategy that `auto` of a point resolves to on the given ranks and network.
#pragma once

#include <map>

#include "comm/probe.h"
#include "schema/point.h"

namespace shardmark {

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
