// File names by pattern: `*`, `?` and `[...]` inside a name, `**` for any number of folders.
#pragma once

#include <string>
#include <vector>

namespace shardmark {

// The regular files that match, sorted. As in a shell, a leading dot must be written out; `**` follows no
// symbolic links. Folders that cannot be read are passed over.
std::vector<std::string> glob(const std::string& pattern);

// What a relative path of a suite means: from the working directory, or else, where nothing is there, from
// the folder of the suite ("": none), so that a suite and its data can be used from anywhere.
std::vector<std::string> glob_near(const std::string& folder, const std::string& pattern);
std::string path_near(const std::string& folder, const std::string& path);

}  // namespace shardmark
