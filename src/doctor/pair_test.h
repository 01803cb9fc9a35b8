// The results of all pairs, by groups in which every two members have met. A group is the ranks of a node, or
// the ranks with the same local rank on all nodes (a rail).
#pragma once

#include <string>
#include <vector>

#include "doctor/heat_map.h"
#include "doctor/ranges.h"
#include "doctor/tournament.h"
#include "doctor/verdicts.h"

namespace shardmark::doctor {

struct GroupSpeeds {
  std::vector<int> ranks;  // [member], rank in the world
  // Exchanges of 8 B per second, and bytes per second in each direction of large exchanges.
  PairSpeeds messages{0}, bytes{0};
};

// What one rank contributes to the gather: its group, its number there, and its times.
struct Meeting {
  double message_s, large_s;  // seconds of one exchange; NaN: rested
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
