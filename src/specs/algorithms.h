// Which algorithm a transport runs: what reports of bus bandwidth have to say beside it.
#pragma once

#include <cstdint>
#include <string>

#include "specs/collectives.h"

namespace shardmark::specs {

// Of transport mpi. A short message travels whole: in one round to every other rank while ranks are few,
// along a tree beyond.
inline constexpr int kFewRanks = 8;
inline constexpr int64_t kShortBytes = 4096;
inline constexpr int64_t kShortBytesPerRank = 512;

inline bool is_short(int64_t bytes, int64_t num_ranks) {
  return bytes <= (num_ranks <= kFewRanks ? kShortBytes : kShortBytesPerRank * num_ranks);
}

// What the mpi transport does with such a message, in words: it has one way for each.
std::string mpi_algorithm(Collective what, int64_t bytes, int64_t ranks);

}  // namespace shardmark::specs
