// Stores the name of the GPU, and asks CUDA for its state without waiting.
#include "device/gpu_in_use.h"

#include <cuda_runtime_api.h>

namespace shardmark {
namespace {

std::string name_in_use;

}  // namespace

void name_gpu_in_use(const std::string& name) { name_in_use = name; }
std::string gpu_in_use() { return name_in_use; }

std::string error_of_gpu_in_use() {
  if (name_in_use.empty()) return "";
  const cudaError_t state = cudaStreamQuery(nullptr);  // any call reports a lost context
  static_cast<void>(cudaGetLastError());               // else the next call reports it
  if (state == cudaSuccess || state == cudaErrorNotReady) return "";
  return std::string("CUDA error: ") + cudaGetErrorString(state);
}

}  // namespace shardmark
