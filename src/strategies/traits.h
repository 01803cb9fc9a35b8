// Properties of a strategy, which are derived from the programs that it writes and not from its name.
#pragma once

#include <string>

namespace shardmark::strategies {

struct Traits {
  bool communicates = true;              // false: each rank trains its own replica, the base of ratios
  bool buckets = false;                  // gradients are reduced in buckets, in one of several ways
  bool is_resolved_at_run_time = false;  // what it does is decided where it runs (auto)
};

// Examines a small step of the strategy with default options. An unknown name gets the defaults above.
const Traits& traits_of(const std::string& strategy);

}  // namespace shardmark::strategies
