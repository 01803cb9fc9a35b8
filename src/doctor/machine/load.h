// What the processors of this node do while all ranks sleep: that is what other processes use.
#pragma once

#include "comm/host_group.h"
#include "doctor/facts.h"

namespace shardmark::machine {

// Half a second, in which no rank of the world computes. Collective; call it where no rank has work under
// way.
doctor::LoadFacts measure_load(const HostGroup& world, const MpiSession& session);

}  // namespace shardmark::machine
