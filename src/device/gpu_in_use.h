// The GPU that this process made current, for error messages about it.
#pragma once

#include <string>

namespace shardmark {

void name_gpu_in_use(const std::string& name);  // while it answers; empty on the CPU
std::string gpu_in_use();                       // "GPU 3 (0000:17:00.0)"

// What CUDA says when the GPU in use cannot be used any more; empty while it can. Does not wait for it.
std::string error_of_gpu_in_use();

}  // namespace shardmark
