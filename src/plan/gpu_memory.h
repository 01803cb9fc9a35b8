// How little memory a rank may be limited to where it computes on a GPU.
#pragma once

#include <cstdint>
#include <string>

namespace shardmark {

// Under a limit torch's allocator also holds what libraries work in: cuBLAS takes 32 MiB for each stream on
// Hopper, cuDNN what its algorithms ask for, and segments are 20 MiB at least. With less than this a limit
// would measure these, not the strategy.
inline constexpr int64_t kLeastGpuMemoryBytes = int64_t{1} << 30;

// Why a rank on a GPU cannot be limited to these bytes; empty when it can. 0: no limit.
std::string gpu_memory_reason(int64_t limit_bytes);

}  // namespace shardmark
