// What this node is called.
#pragma once

#include <unistd.h>

#include <string>

namespace shardmark {

inline std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace shardmark
