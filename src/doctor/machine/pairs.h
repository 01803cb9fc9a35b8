// Measures every pair of ranks within nodes, and every pair of nodes, within a given time.
#pragma once

#include "doctor/machine/exchange.h"
#include "doctor/pair_test.h"

namespace shardmark::machine {

struct PairOptions : ExchangeOptions {
  double budget_s = 25;  // for the measurements; making connections takes longer
};

// The pairs of a round are disjoint and exchange at the same time. Across nodes, ranks with the same local
// rank form the pairs. The result is on rank 0. Collective.
doctor::PairTest measure_pairs(const HostGroup& world, const PairOptions& options);

}  // namespace shardmark::machine
