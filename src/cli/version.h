// The text of `shardmark --version`.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/registry.h"

namespace shardmark {

// Libraries to which only a part of the program is linked; that part registers them. The version is that of
// the loaded library; empty if it is not there.
struct LibrariesEntry {
  std::vector<std::pair<std::string, std::string>> (*versions)();
};

// "shardmark 0.1.0 (revision 824a49b)", then a line for each library.
std::string version_text();

}  // namespace shardmark
