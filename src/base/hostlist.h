// Expands the compact lists of names that Slurm's tools write: "n[01-16,20],login1" (man slurm.conf,
// NodeName; scontrol show hostnames).
#pragma once

#include <string>
#include <vector>

namespace shardmark {

// Returns the names in the order given; a number keeps its leading zeroes. Several brackets in one name give
// all combinations, and the last bracket varies fastest. Throws UsageError if brackets do not match or hold
// something other than numbers, if a range runs backwards, if a name is empty, or if there are more than a
// million names.
std::vector<std::string> expand_hostlist(const std::string& text);

}  // namespace shardmark
