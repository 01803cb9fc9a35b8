// The check for errors of CUDA and of NCCL.
#include "comm/nccl/check.h"

#include <string>

#include "base/error.h"
#include "comm/nccl/lost_gpu.h"

namespace shardmark {
namespace {

[[noreturn]] void fail(const char* call, const std::string& reason, const char* file, int line) {
  throw SystemError(std::string(call) + " failed: " + reason + " (" + file + ":" + std::to_string(line) +
                    ")");
}

}  // namespace

void check_gpu(cudaError_t code, const char* call, const char* file, int line) {
  if (code == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // clears it; else the next call reports it
  end_job_if_gpu_is_lost(cudaGetErrorString(code));
  fail(call, cudaGetErrorString(code), file, line);
}

void check_gpu(ncclResult_t code, const char* call, const char* file, int line) {
  // Communicators are blocking, so ncclInProgress never occurs.
  if (code == ncclSuccess) return;
  const std::string reason = std::string(ncclGetErrorString(code)) + "; " + ncclGetLastError(nullptr);
  end_job_if_gpu_is_lost(reason);
  fail(call, reason, file, line);
}

}  // namespace shardmark
