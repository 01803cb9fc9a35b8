// Time from this node's monotonic clock. Times of different nodes cannot be compared.
#pragma once

#include <chrono>

namespace shardmark {

inline double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// How long this process has existed, to 10 ms; an exec() does not begin it anew. NaN where /proc does not
// say.
double process_age_s();

// By the wall clock, which nodes may have set differently.
inline double since_1970_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace shardmark
