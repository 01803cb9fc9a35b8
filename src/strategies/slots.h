// Which slot each use of a group finds it in: slots are placed when a program is written, like registers.
#pragma once

#include <cstdint>
#include <vector>

namespace shardmark::strategies {

struct SlotUse {
  size_t group = 0;
  int64_t slot = 0;
  bool unshards = true;  // it does not lie there yet
  bool reshards = true;  // its slot is used by another group before its next use, or there is none
};

// groups: of each use, in order. While a use computes, those of the next num_slots - 1 may be unsharded, so
// each of these has a slot; of the others, the group that is used last gives up its slot. Source: Belady, IBM
// Systems Journal 1966.
std::vector<SlotUse> plan_slots(const std::vector<size_t>& groups, int64_t num_slots);

}  // namespace shardmark::strategies
