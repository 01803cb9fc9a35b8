// What the mpi transport's own algorithms send, where a ring would send something else (comm/README.md says
// why they are as they are).
#pragma once

#include "laws/program.h"

namespace shardmark::laws {

// A short message travels whole: in one round to every other rank while ranks are few, along a tree beyond.
inline constexpr int64_t kFewRanks = 8;
inline constexpr int64_t kShortBytes = 4096;
inline constexpr int64_t kShortBytesPerRank = 512;

inline bool is_short(int64_t bytes, int64_t num_ranks) {
  return bytes <= (num_ranks <= kFewRanks ? kShortBytes : kShortBytesPerRank * num_ranks);
}

// Bytes that a rank sends, as the mean over the ranks: payload x ring factor, but for
// - all_reduce of a short message among few ranks: everyone sends all of it to everyone;
// - reduce of a long one: after the exchange of a reduce-scatter every rank hands its piece to the root,
// (n+1)/n of
//   what a ring sends.
double wire_bytes(const StartedOperation& operation);
double wire_bytes(const Program& program);  // of all its operations

}  // namespace shardmark::laws
