// Every pair of ranks in nodes, and every pair of nodes, measured within a time.
#pragma once

#include "doctor/machine/exchange.h"
#include "doctor/pair_test.h"

namespace shardmark::machine {

struct PairOptions : ExchangeOptions {
  double budget_s = 25;  // for the measurements; connections come on top
};

// Pairs of a round are disjoint and run at once; across nodes, the ranks of one local number on all nodes.
// The result is on rank 0. Collective.
doctor::PairTest measure_pairs(const HostGroup& world, const PairOptions& options);

}  // namespace shardmark::machine
