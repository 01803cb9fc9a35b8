// What the heartbeats of all ranks show when nothing moves: who is behind, in what, and who waits for it.
#pragma once

#include <string>
#include <vector>

#include "comm/watch/node_heartbeats.h"

namespace shardmark {

struct Diagnosis {
  std::string message;  // lines for people
  std::string reason;   // one line for the record of the point
};

// states: of all ranks.
//
// Note [Who is behind]: ranks that do not answer. Where all do, those that work on something while the others
// wait for ranks: they have not come to an end of it for the whole timeout. Where all of them work, or all
// wait, those that are least far: fewest points begun, then operations started, then stages begun, then
// operations completed, which come in the same order on every rank.
Diagnosis explain(std::vector<RankState> states, const NodeMap& node_map);

// "0-1, 3": ascending.
std::string ranges(const std::vector<int64_t>& numbers);

}  // namespace shardmark
