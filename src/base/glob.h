// File names by pattern. `*`, `?` and `[...]` match inside a name; `**` matches any number of folders.
#pragma once

#include <string>
#include <vector>

namespace shardmark {

// Returns the regular files that match, sorted. As in a shell, a leading dot must be written out, and `**`
// does not follow symbolic links. Folders that cannot be read are skipped.
std::vector<std::string> glob(const std::string& pattern);

// Resolve a relative path that a suite names. It is looked up in the working directory first and, if nothing
// is there, in the folder of the suite (an empty `folder` means that there is none). So a suite and its data
// can be used from anywhere.
std::vector<std::string> glob_near(const std::string& folder, const std::string& pattern);
std::string path_near(const std::string& folder, const std::string& path);

}  // namespace shardmark
