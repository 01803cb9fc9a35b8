// Names as Slurm's tools write many of them: "n[01-16,20],login1" (man slurm.conf, NodeName; scontrol show
// hostnames).
#pragma once

#include <string>
#include <vector>

namespace shardmark {

// In the order given; a number keeps the zeroes it is written with. Several brackets in a name are all
// combined, the last varying fastest. UsageError: brackets that do not match, something else than numbers in
// them, a range that runs backwards, an empty name, more than a million names.
std::vector<std::string> expand_hostlist(const std::string& text);

}  // namespace shardmark
