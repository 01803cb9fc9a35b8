// Time from this node's monotonic clock. Times of different nodes cannot be compared.
#pragma once

#include <chrono>

namespace shardmark {

inline double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace shardmark
