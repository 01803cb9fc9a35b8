// Which strategy `auto` of a point resolves to on the given ranks and network.
#pragma once

#include <map>

#include "comm/probe.h"
#include "schema/point.h"

namespace shardmark {

using ProbeCache = std::map<std::string, Probe>;  // by transport and ranks

// The point with `auto` resolved, and the reason in words: empty where nothing was chosen.
struct Settled {
  Point point;
  std::string reason;
  double communication_s = 0;  // of its step, as the probe expects it; 0: unknown
};

bool needs_settling(const Point& point);  // has `auto`

// The same on all ranks; collective over `group`, which holds the ranks of `comm`. The probe is made once for
// each number of ranks.
Settled settle_strategy(const Point& point, const HostGroup& group, Communicator& comm, ProbeCache& probes);

}  // namespace shardmark
