// Decides which slot each use of a block's units finds their parameters in. The decision is made while a
// program is written, as a compiler allocates registers.
#pragma once

#include <cstdint>
#include <vector>

namespace shardmark::strategies {

struct SlotUse {
  size_t block = 0;
  int64_t slot = 0;
  bool unshards = true;  // the block's units are not in the slot yet and must be gathered
  // Another block takes the slot before the block's next use, or there is no next use.
  bool reshards = true;
};

// `blocks` has the block of each use, in order. While a use computes, the units of the next num_slots - 1
// uses may be gathered, so that each of these needs a slot. Among all other blocks, the one whose next use is
// the farthest away gives up its slot. Source: Belady, IBM Systems Journal 1966.
std::vector<SlotUse> plan_slots(const std::vector<size_t>& blocks, int64_t num_slots);

}  // namespace shardmark::strategies
