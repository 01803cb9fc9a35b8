// CMakeLists.txt defines both macros for this file alone, so that only this file is recompiled after a
// commit.
#include "base/revision.h"

namespace shardmark {

std::string version() { return SHARDMARK_VERSION; }
std::string revision() { return SHARDMARK_REVISION; }

}  // namespace shardmark
