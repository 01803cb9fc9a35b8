// The test of pairs: which pairs are measured when, in rounds in which each member meets one other, and the
// results by groups in which every two members have met. A group is the ranks of a node, or the ranks with
// the same local rank on all nodes (a rail).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/damage.h"
#include "base/ranges.h"
#include "doctor/pairs.h"
#include "doctor/verdicts.h"

namespace shardmark::doctor {

// The circle method: over all rounds every two of n members meet once. If n is odd, one member rests in each
// round.
int num_rounds(int n);
int partner(int n, int round, int member);  // -1: rests

struct Meetings {
  // Ascending. If not all rounds fit, an evenly spread sample.
  std::vector<int> rounds;
  // Passes over all rounds. The fastest counts, because faults stay and disturbances do not.
  int passes = 1;
  int repeats = 1;  // large messages per meeting
};

// Plans what fits into budget_s seconds if a round takes setup_s plus exchange_s for each large message; the
// first message of a meeting is not counted in the result. At least one round with one message is planned.
Meetings plan_meetings(int num_rounds, double setup_s, double exchange_s, double budget_s);

struct GroupSpeeds {
  std::vector<int> ranks;  // [member], rank in the world
  // Exchanges of 8 B per second, and bytes per second in each direction of large exchanges.
  PairSpeeds messages{0}, bytes{0};
  // Messages that arrived damaged, with ranks of the world. Of each meeting one large exchange is compared,
  // element by element.
  std::vector<Damage> damage = {};
};

// What one rank contributes to the gather: its group, its number there, and its times.
struct Meeting {
  double message_s, large_s;  // seconds of one exchange; NaN: rested
  double wrong = 0;           // elements of the partner's message that arrived with another value
};
struct Witness {
  int group = 0, member = 0, size = 1;
  std::vector<Meeting> meetings;  // by round of the plan
};
std::vector<GroupSpeeds> groups_from(const std::vector<Witness>& world, const std::vector<int>& rounds,
                                     int64_t large_bytes);

struct Phase {
  std::vector<GroupSpeeds> groups;
  Meetings plan;
  int num_rounds = 0;
};

struct PairTest {
  // A phase has no rounds if nodes have one rank each, or if there is one node.
  Phase in_nodes, across;
  int64_t large_bytes = 0;
  double seconds = 0;
  // There are more ranks than cores on a machine; then ranks wait for cores, not for links.
  bool crowded = false;
  std::string transport;
};

struct PairReport : Verdicts {
  std::vector<Map> maps;  // between and in nodes: bandwidth and latency
};
// `hosts` has the host name of each rank.
PairReport report_pairs(const PairTest& test, const std::vector<std::string>& hosts);

}  // namespace shardmark::doctor
