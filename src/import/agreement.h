// What all sources and flags must agree on.
#pragma once

#include <vector>

#include "import/placement.h"

namespace shardmark::imports {

// UsageError: times of two kinds, a flag that a source contradicts, or a fact that nobody says.
void require_agreement(const std::vector<Read>& all, const Given& given);

}  // namespace shardmark::imports
