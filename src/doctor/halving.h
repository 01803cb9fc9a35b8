// Finds the nodes that make a machine slow, by halving it. halving.cpp describes the method.
#pragma once

#include "base/stats.h"
#include "doctor/exchange.h"
#include "doctor/verdicts.h"

namespace shardmark::doctor {

struct SlowNode {
  // The partner with which the node was measured. The partner is fast with others.
  int member = 0, partner = 0;
  double times_as_long = 0;  // relative to the usual pair: median of the repeats
  Interval interval{};       // 95 % confidence interval of times_as_long
  int beyond = 0;            // number of repeats beyond the limit
};

struct Halving {
  // Relative to the time of the usual pair; a group that takes longer is slow.
  double limit = 0;
  int64_t bytes = 0;  // size of an exchange
  // The time of all members, relative to the usual pair.
  double whole = 0;
  std::vector<SlowNode> nodes;  // the nodes that were found to be slow
  // Groups that are slow although neither half is: what the halves share is slow.
  std::vector<Group> together;
  // Both halves are slow at the same time, but not one after the other.
  bool halves_disturb = false;
  // Groups that are slow but cannot be split, because no node is known to be fast and could be a partner.
  std::vector<Group> unresolved;
  int runs = 0;
};

// Needs at least four members. If one member is slow, it takes at most ceil(log2 n) + 4 runs.
Halving halve(const Members& members, const Exchange& exchange, bool crowded);

// in_node, and `crowded` above, mean the same as in bisection.h.
Verdicts report_halving(const Members& members, const Halving& found, bool in_node);

}  // namespace shardmark::doctor
