// Properties of a strategy, derived from the programs that it writes, not from its name.
#pragma once

#include <string>

namespace shardmark::strategies {

struct Traits {
  bool communicates = true;              // false: each rank trains a replica of its own, the base of ratios
  bool buckets = false;                  // gradients are reduced in buckets, in one of several ways
  bool is_resolved_at_run_time = false;  // once it is known where it runs
};

// By a small step of it with its default options; the defaults above for a name that is not known.
const Traits& traits_of(const std::string& strategy);

}  // namespace shardmark::strategies
