// Measures what this node's processors do while all ranks sleep; that is what other processes use.
#pragma once

#include "comm/host_group.h"
#include "doctor/facts.h"

namespace shardmark::machine {

// Takes half a second, in which no rank of the world computes. Collective; call it when no rank has work in
// flight.
doctor::LoadFacts measure_load(const HostGroup& world, const MpiSession& session);

}  // namespace shardmark::machine
