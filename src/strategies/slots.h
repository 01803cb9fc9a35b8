// Decides which slot each use of a group finds its parameters in. The decision is made while a program is
// written, as a compiler allocates registers.
#pragma once

#include <cstdint>
#include <vector>

namespace shardmark::strategies {

struct SlotUse {
  size_t group = 0;
  int64_t slot = 0;
  bool unshards = true;  // the group is not in the slot yet and must be gathered
  // Another group takes the slot before the group's next use, or there is no next use.
  bool reshards = true;
};

// `groups` has the group of each use, in order. While a use computes, the groups of the next num_slots - 1
// uses may be gathered, so that each of these needs a slot. Among all other groups, the one whose next use is
// the farthest away gives up its slot. Source: Belady, IBM Systems Journal 1966.
std::vector<SlotUse> plan_slots(const std::vector<size_t>& groups, int64_t num_slots);

}  // namespace shardmark::strategies
