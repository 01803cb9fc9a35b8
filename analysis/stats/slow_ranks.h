// Ranks and nodes that compute longer than the others at the same work.
#pragma once

#include <string>
#include <vector>

#include "analysis/frame/merged.h"

namespace shardmark {

struct Slow {
  const MergedPoint* about;  // the point in which it was slowest, of all that have its ranks
  bool is_node = false;
  int64_t rank = -1;   // of a node: -1
  std::string host;    // "" where the study does not say
  double excess = 0;   // time / median of the others - 1
  int64_t others = 0;  // other points in which it was slow
};

// Only training points that are not unreliable are searched. analysis/COLUMNS.md has the rules.
std::vector<Slow> slow_ranks(const std::vector<MergedPoint>& points);

}  // namespace shardmark
