// The lowest memory limit of a rank that computes on a GPU.
#pragma once

#include <cstdint>
#include <string>

namespace shardmark {

// The limit applies to all memory that LibTorch's allocator takes, which includes the workspaces of
// libraries: cuBLAS takes 32 MiB for each stream on Hopper, cuDNN takes what its algorithms need, and
// segments have at least 20 MiB. A lower limit would measure these and not the strategy.
inline constexpr int64_t kLeastGpuMemoryBytes = int64_t{1} << 30;

// Returns why a rank on a GPU cannot be limited to this many bytes; empty if it can. 0 means no limit.
std::string gpu_memory_reason(int64_t limit_bytes);

}  // namespace shardmark
