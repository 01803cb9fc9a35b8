// The placement of a world's ranks: one line for people, one value for the study, layouts for a table.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "doctor/facts.h"

namespace shardmark::doctor {

// "4 ranks on 1 node, each on 2 cores of its own; NUMA nodes 0-1".
std::string placement_line(const std::vector<RankFacts>& world);

// An entry for each different place: {"ranks": "0,8,16", "cores": "0-13", "numa": "0", "gpu": "0000:17:00.0",
// "bound_by": "shardmark"}; "cores" are logical processors.
nlohmann::ordered_json placement_json(const std::vector<RankFacts>& world);

// Nodes whose ranks sit alike, by order of appearance.
struct NodePlacement {
  std::vector<std::string> nodes;
  std::vector<const RankFacts*> ranks;  // of the first of them
};
std::vector<NodePlacement> node_placements(const std::vector<RankFacts>& world);

}  // namespace shardmark::doctor
