// Adds a study to the reference collection, for `report --share`.
#pragma once

#include <string>

namespace shardmark {

// Checks the study and writes it into the folder, without names of hosts and people. Returns the exit status:
// a study that the collection does not take is a mistake in usage, with a line for each reason.
int share_study(const std::string& study, const std::string& folder, bool overwrite);

}  // namespace shardmark
