// The error message for a memory limit that is too small, shared by plan and by runs.
#include "plan/gpu_memory.h"

#include <fmt/format.h>

#include "base/units.h"

namespace shardmark {

std::string gpu_memory_reason(int64_t limit_bytes) {
  if (limit_bytes == 0 || limit_bytes >= kLeastGpuMemoryBytes) return "";
  return fmt::format(
      "a memory limit of {} is too small for GPUs, where workspaces of CUDA's libraries count as well: give "
      "{} or more (--memory-limit 1GiB), or run on CPUs (--device cpu)",
      format_bytes(static_cast<double>(limit_bytes)),
      format_bytes(static_cast<double>(kLeastGpuMemoryBytes)));
}

}  // namespace shardmark
