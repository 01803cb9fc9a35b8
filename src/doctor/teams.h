// Whether the ranks that share a model's blocks or sequences are on one node.
#pragma once

#include <vector>

#include "doctor/checks.h"
#include "schema/point.h"

namespace shardmark::doctor {

inline constexpr const char* kTeamsCheck = "ranks of a layout that share blocks or sequences";

// Warnings about the layouts of training points: tensor and context teams that span nodes. Such ranks
// exchange inside every block, in which nothing hides it, so that a measurement would be of the links between
// nodes. world: all ranks, by rank; a point uses the first ones. One finding for each kind of team.
Findings check_teams(const World& world, const std::vector<Point>& points);

}  // namespace shardmark::doctor
