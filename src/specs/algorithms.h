// Which messages the mpi transport sends whole, and which in pieces (comm/README.md).
#pragma once

#include <cstdint>

namespace shardmark::specs {

// The mpi transport sends a short message whole: directly to every other rank in one round if there are few
// ranks, and along a binomial tree otherwise.
inline constexpr int kFewRanks = 8;
inline constexpr int64_t kShortBytes = 4096;
inline constexpr int64_t kShortBytesPerRank = 512;

inline bool is_short(int64_t bytes, int64_t num_ranks) {
  return bytes <= (num_ranks <= kFewRanks ? kShortBytes : kShortBytesPerRank * num_ranks);
}

}  // namespace shardmark::specs
