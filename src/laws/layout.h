// The layout of a group's flat buffer, in elements; the same for every dtype, so that master, copy, gradient and moments
// line up. Tensors start at multiples of 128 elements, a group ends at a multiple of ranks x 128.
#pragma once

#include "laws/model_table.h"

namespace shardmark::laws {

inline constexpr int64_t kAlignment = 128;  // elements: 512 bytes in fp32, a cache line multiple in every dtype

struct FlatLayout {
  std::vector<int64_t> offsets;  // of each parameter of the group
  int64_t numel = 0;             // padded to ranks x 128
  int64_t shard_numel = 0;       // numel / ranks
};

FlatLayout flat_layout(const GroupSpec& group, int64_t ranks);

// zero3: whole tensors dealt to ranks, largest first, each to the rank that has least so far (ties: lowest rank).
// owners[group][parameter] is the rank that holds it.
std::vector<std::vector<int64_t>> deal_tensors(const ModelTable& table, int64_t ranks);

}  // namespace shardmark::laws
