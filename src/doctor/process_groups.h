// Checks whether the ranks of a tensor, context or expert parallel group are on one node.
#pragma once

#include <vector>

#include "doctor/checks.h"
#include "schema/point.h"

namespace shardmark::doctor {

inline constexpr const char* kGroupsCheck = "ranks of a layout that share blocks or sequences";

// Warns about configurations whose tensor, context or expert parallel groups span nodes. Such ranks
// communicate inside every block, where nothing hides the communication, so that a measurement would show the
// links between nodes. `world` holds all ranks in rank order; a configuration uses the first ones. There is
// one finding for each kind of group.
Findings check_process_groups(const World& world, const std::vector<Point>& points);

}  // namespace shardmark::doctor
