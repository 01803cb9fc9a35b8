// The two overloads of the check.
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
  static_cast<void>(cudaGetLastError());  // or the next call reports it again
  end_job_if_gpu_is_lost(cudaGetErrorString(code));
  fail(call, cudaGetErrorString(code), file, line);
}

void check_gpu(ncclResult_t code, const char* call, const char* file, int line) {
  if (code == ncclSuccess) return;  // all communicators block: nothing is ever in progress
  const std::string reason = std::string(ncclGetErrorString(code)) + "; " + ncclGetLastError(nullptr);
  end_job_if_gpu_is_lost(reason);
  fail(call, reason, file, line);
}

}  // namespace shardmark
