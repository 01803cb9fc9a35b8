// Where the ranks of an imported study ran. A study has one placement for all of its records.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "import/source.h"

namespace shardmark::imports {

using Read = std::pair<const Source*, Contents>;

// Returns the node of each rank of the largest record, or nothing if neither a source nor a flag tells. Nodes
// without a name are numbered and then have equal numbers of ranks. Throws UsageError if sources contradict
// each other or the flags, or if one source tells less than another.
std::vector<std::string> placement_of(const std::vector<Read>& all, const Given& given);

// Returns the device of each rank. Throws UsageError if nobody tells, or if sources and flag tell different
// ones.
std::vector<std::string> devices_of(const std::vector<Read>& all, const Given& given, int64_t ranks);

int64_t most_ranks(const std::vector<Read>& all);

}  // namespace shardmark::imports
