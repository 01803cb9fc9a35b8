// What `shardmark --version` says.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/registry.h"

namespace shardmark {

// Libraries that only a part of the program is linked to: registered by that part. A version is that of the
// library that is loaded; empty: it is not there.
struct LibrariesEntry {
  std::vector<std::pair<std::string, std::string>> (*versions)();
};

// "shardmark 0.1.0 (revision 824a49b)", then a line for each library.
std::string version_text();

}  // namespace shardmark
