// The algorithm that a transport uses for a collective, which reports show beside its bus bandwidth.
#pragma once

#include <cstdint>
#include <string>

#include "specs/collectives.h"

namespace shardmark::specs {

// The mpi transport sends a short message whole: directly to every other rank in one round if there are few
// ranks, and along a binomial tree otherwise.
inline constexpr int kFewRanks = 8;
inline constexpr int64_t kShortBytes = 4096;
inline constexpr int64_t kShortBytesPerRank = 512;

inline bool is_short(int64_t bytes, int64_t num_ranks) {
  return bytes <= (num_ranks <= kFewRanks ? kShortBytes : kShortBytesPerRank * num_ranks);
}

// The mpi transport's algorithm for such a message, in words. There is one for each case.
std::string mpi_algorithm(Collective what, int64_t bytes, int64_t ranks);

}  // namespace shardmark::specs
