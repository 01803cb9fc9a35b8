// GPU_CHECK(call) throws SystemError if a call of CUDA or NCCL fails. If the error means that the GPU is
// lost, the job ends instead (lost_gpu.h).
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

namespace shardmark {

void check_gpu(cudaError_t code, const char* call, const char* file, int line);
void check_gpu(ncclResult_t code, const char* call, const char* file, int line);

}  // namespace shardmark

#define GPU_CHECK(call) ::shardmark::check_gpu((call), #call, __FILE__, __LINE__)
