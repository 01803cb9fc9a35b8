// Which ranks compute longer than the others, and since when.
#pragma once

#include <vector>

#include "analysis/sustained.h"

namespace shardmark {

// compute: [rank][interval], the time of the same work; ends_s: of the intervals; hosts: of the ranks, or
// empty.
std::vector<SlowSpell> slow_spells(const std::vector<std::vector<double>>& compute,
                                   const std::vector<double>& ends_s, const std::vector<std::string>& hosts);

}  // namespace shardmark
