// The results of all pairs, by groups in which every two members met: the ranks of a node, and the ranks
// of one local number (a rail) across nodes.
#pragma once

#include <string>
#include <vector>

#include "doctor/heat_map.h"
#include "doctor/ranges.h"
#include "doctor/tournament.h"
#include "doctor/verdicts.h"

namespace shardmark::doctor {

struct GroupSpeeds {
  std::vector<int> ranks;            // of the world, by member
  PairSpeeds messages{0}, bytes{0};  // exchanges of 8 B a second; bytes a second each way in large ones
};

// One gather of it: what each rank of the world belongs to, its number there, and its times.
struct Meeting {
  double message_s, large_s;  // of one exchange; NaN: rested
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
  Phase in_nodes, across;  // no rounds where a node has one rank, or there is one node
  int64_t large_bytes = 0;
  double seconds = 0;
  bool crowded = false;  // more ranks than cores on a machine: they wait for cores, not for links
  std::string transport;
};

struct PairReport : Verdicts {
  std::vector<Map> maps;  // between nodes, in nodes: bandwidth and latency
};
// hosts: of each rank.
PairReport report_pairs(const PairTest& test, const std::vector<std::string>& hosts);

}  // namespace shardmark::doctor
