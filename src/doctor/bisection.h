// Compares the bandwidth between two halves of a machine with the sum of the bandwidths of the links between
// them, each measured alone.
#pragma once

#include <utility>

#include "base/stats.h"
#include "doctor/exchange.h"
#include "doctor/switches.h"
#include "doctor/verdicts.h"

namespace shardmark::doctor {

struct Cut {
  // Such as "bisection node1 .. node4 | node5 .. node8" or "leaf1 | the rest".
  std::string name;
  // Pairs of members across the cut. Each member is in one pair at most.
  std::vector<std::pair<int, int>> pairs;
};

// The cuts to measure. One divides the first half of the members from the last (with an odd number the member
// in the middle rests). With `switches`, each switch adds a cut between the nodes below it and as many of the
// others; if that is the same cut, it gets the switch's name. With fewer than four members there is no cut,
// because only one pair would cross it.
std::vector<Cut> cuts_of(const Members& members, const Switches& switches);

// The results of a cut. Bandwidths are in bytes/s in each direction, for the whole cut; they are medians over
// the repeats.
struct CutSpeed {
  Cut cut;
  int64_t bytes = 0;  // size of an exchange
  // The number of pairs that were measured alone. If not all were, these are evenly spread.
  size_t num_alone = 0;
  double alone = 0;     // sum over pairs, each measured alone
  double together = 0;  // all at once: bytes / time of the slowest pair
  Interval together_interval{};
  double share = 0;  // together / alone
  Interval share_interval{};
  // The slowest pair of members in the median repeat while all pairs exchange.
  std::pair<int, int> slowest{};
  double stretch = 0;  // its time then / its time alone
};

CutSpeed measure_cut(const Members& members, const Cut& cut, const Exchange& exchange);

struct CutReport : Verdicts {
  std::vector<CutSpeed> cuts;
};
// With in_node the members are ranks of one node. They share memory and buses by design, so no cut is called
// slow. `crowded` means that there are more ranks than cores.
CutReport report_cuts(const Members& members, std::vector<CutSpeed> cuts, bool in_node, bool crowded);

}  // namespace shardmark::doctor
