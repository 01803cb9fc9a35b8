// The bandwidth between two halves of a machine, against that of the links between them one by one.
#pragma once

#include <utility>

#include "base/stats.h"
#include "doctor/exchange.h"
#include "doctor/switches.h"
#include "doctor/verdicts.h"

namespace shardmark::doctor {

struct Cut {
  std::string name;                        // "bisection node1 .. node4 | node5 .. node8", "leaf1 | the rest"
  std::vector<std::pair<int, int>> pairs;  // of members, across the cut; each member in one at most
};

// The first half of the members against the last (of an odd number the one in the middle rests), and with
// switches: what hangs on each of them against as many of the rest, unless that is the same cut, which then
// has the switch's name. None among fewer than four members, where one pair at most crosses.
std::vector<Cut> cuts_of(const Members& members, const Switches& switches);

// Bandwidths are bytes/s each way, over all of the cut; medians of the repeats.
struct CutSpeed {
  Cut cut;
  int64_t bytes = 0;     // of an exchange
  size_t num_alone = 0;  // pairs that were measured alone; where these are not all: evenly spread
  double alone = 0;      // sum over the pairs, each measured while nobody else exchanges
  double together = 0;   // while all do: bytes / time of the slowest pair
  Interval together_interval{};
  double share = 0;  // together / alone
  Interval share_interval{};
  std::pair<int, int> slowest{};  // pair of members, in the median repeat while all exchange
  double stretch = 0;             // its time then / its time alone
};

CutSpeed measure_cut(const Members& members, const Cut& cut, const Exchange& exchange);

struct CutReport : Verdicts {
  std::vector<CutSpeed> cuts;
};
// in_node: members are ranks of one node, which share its memory and buses by design: nobody is called slow.
// crowded: more ranks than cores.
CutReport report_cuts(const Members& members, std::vector<CutSpeed> cuts, bool in_node, bool crowded);

}  // namespace shardmark::doctor
