// Checks that all sources and flags agree.
#pragma once

#include <vector>

#include "import/placement.h"

namespace shardmark::imports {

// Throws UsageError if there are times of two kinds, if a flag contradicts a source, or if a fact is missing
// everywhere.
void require_agreement(const std::vector<Read>& all, const Given& given);

}  // namespace shardmark::imports
