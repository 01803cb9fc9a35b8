// Both are given by CMakeLists.txt: this file alone is compiled again after a commit.
#include "base/revision.h"

namespace shardmark {

std::string version() { return SHARDMARK_VERSION; }
std::string revision() { return SHARDMARK_REVISION; }

}  // namespace shardmark
