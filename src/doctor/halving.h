// Which nodes make a machine slow, by halving it.
#pragma once

#include "base/stats.h"
#include "doctor/exchange.h"
#include "doctor/verdicts.h"

namespace shardmark::doctor {

struct SlowNode {
  int member = 0, partner = 0;  // measured with that one, which is fast in other company
  double times_as_long = 0;     // as the usual pair: median of the repeats
  Interval interval{};          // its 95 % interval
  int beyond = 0;               // repeats beyond the limit
};

struct Halving {
  double limit = 0;               // times as long as the usual pair: beyond is slow
  int64_t bytes = 0;              // of an exchange
  double whole = 0;               // of all members, times as long as the usual pair
  std::vector<SlowNode> nodes;    // named
  std::vector<Group> together;    // slow, though neither half is: what the halves share
  bool halves_disturb = false;    // both halves are slow at the same time, and neither one after the other
  std::vector<Group> unresolved;  // slow, and no node is known to be fast that could be a partner
  int runs = 0;
};

// Four members or more. At most ceil(log2 n) + 4 runs where one member is slow, whatever their number.
Halving halve(const Members& members, const Exchange& exchange, bool crowded);

// in_node, and crowded above: as in bisection.h.
Verdicts report_halving(const Members& members, const Halving& found, bool in_node);

}  // namespace shardmark::doctor
