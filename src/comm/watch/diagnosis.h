// Explains a hang from the heartbeats of all ranks: which ranks are behind, where, and which ranks wait for
// them.
#pragma once

#include <string>
#include <vector>

#include "comm/watch/node_heartbeats.h"

namespace shardmark {

struct Diagnosis {
  std::string message;  // several lines for people
  std::string reason;   // one line for the record of the configuration
};

// `states` holds those of all ranks.
//
// Note [Who is behind]: ranks that do not answer are behind. If all answer, the ranks are behind that work on
// something while the others wait, because they have not finished it for the whole timeout. If all of them
// work, or all wait, those ranks are behind that have come least far: fewest configurations begun, then
// operations started, then stages begun, then operations completed. These come in the same order on every
// rank, so the counts can be compared.
Diagnosis explain(std::vector<RankState> states, const NodeMap& node_map);

// Formats ascending numbers: "0-1, 3".
std::string ranges(const std::vector<int64_t>& numbers);

}  // namespace shardmark
