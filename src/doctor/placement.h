// The placement of a world's ranks: as one line for people, as a value for the study, and as layouts for a
// table.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "doctor/facts.h"

namespace shardmark::doctor {

// For example "4 ranks on 1 node, each on 2 cores of its own; NUMA nodes 0-1".
std::string placement_line(const std::vector<RankFacts>& world);

// One entry for each distinct placement: {"ranks": "0,8,16", "cores": "0-13", "numa": "0", "gpu":
// "0000:17:00.0", "bound_by": "shardmark"}. "cores" are logical processors.
nlohmann::ordered_json placement_json(const std::vector<RankFacts>& world);

// Groups nodes whose ranks are placed alike, in order of appearance.
struct NodePlacement {
  std::vector<std::string> nodes;
  std::vector<const RankFacts*> ranks;  // ranks of the first of these nodes
};
std::vector<NodePlacement> node_placements(const std::vector<RankFacts>& world);

}  // namespace shardmark::doctor
