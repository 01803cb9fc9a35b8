// Where the ranks of an imported study lay: one placement for all of its records, as a study has it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "import/source.h"

namespace shardmark::imports {

using Read = std::pair<const Source*, Contents>;

// The node of each rank, of as many as took part at most; empty where neither a source nor a flag says. Nodes
// without a name are numbered, and have equal numbers of ranks then. UsageError: sources contradict each
// other or the flags, or one says less than another.
std::vector<std::string> placement_of(const std::vector<Read>& all, const Given& given);

// The device of each of so many ranks. UsageError: nobody says, or sources and flag say different ones.
std::vector<std::string> devices_of(const std::vector<Read>& all, const Given& given, int64_t ranks);

int64_t most_ranks(const std::vector<Read>& all);

}  // namespace shardmark::imports
