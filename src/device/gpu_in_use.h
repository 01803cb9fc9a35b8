// The GPU that this process made current, for error messages.
#pragma once

#include <string>

namespace shardmark {

// Call it while the GPU still answers; the name is empty on the CPU.
void name_gpu_in_use(const std::string& name);
std::string gpu_in_use();  // "GPU 3 (0000:17:00.0)"

// CUDA's error if the GPU in use cannot be used any more, otherwise empty. Does not wait for the GPU.
std::string error_of_gpu_in_use();

}  // namespace shardmark
