// Every pair of ranks in nodes, and every pair of nodes, measured within a time.
#pragma once

#include <ATen/ATen.h>

#include <string>

#include "comm/communicator.h"
#include "comm/watch/heartbeat.h"
#include "doctor/pair_test.h"

namespace shardmark::machine {

struct PairOptions {
  std::string transport;
  at::Device device{at::kCPU};
  double budget_s = 25;            // for the measurements; connections come on top
  Heartbeat* heartbeat = nullptr;  // where operations and rounds are noted, for a watchdog
};

// Pairs of a round are disjoint and run at once; across nodes, the ranks of one local number on all nodes.
// The result is on rank 0. Collective.
doctor::PairTest measure_pairs(const HostGroup& world, const PairOptions& options);

}  // namespace shardmark::machine
