// File names by pattern: `*`, `?` and `[...]` inside a name, `**` for any number of folders.
#pragma once

#include <string>
#include <vector>

namespace shardmark {

// The regular files that match, sorted. As in a shell, a leading dot must be written out; `**` follows no
// symbolic links. Folders that cannot be read are passed over.
std::vector<std::string> glob(const std::string& pattern);

}  // namespace shardmark
