// Recognizes CUDA's errors after which the context or the GPU is gone. Source: driver_types.h, which says for
// these errors that "the process must be terminated and relaunched", and the errors for devices that are no
// longer there.
#include "comm/nccl/lost_gpu.h"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "base/exit_status.h"
#include "base/log.h"
#include "base/node.h"
#include "base/text.h"
#include "comm/host_group.h"
#include "device/device.h"

namespace shardmark {
namespace {

constexpr cudaError_t kLast[] = {cudaErrorECCUncorrectable,
                                 cudaErrorNvlinkUncorrectable,
                                 cudaErrorContained,
                                 cudaErrorIllegalAddress,
                                 cudaErrorLaunchTimeout,
                                 cudaErrorContextIsDestroyed,
                                 cudaErrorAssert,
                                 cudaErrorHardwareStackError,
                                 cudaErrorIllegalInstruction,
                                 cudaErrorMisalignedAddress,
                                 cudaErrorInvalidAddressSpace,
                                 cudaErrorInvalidPc,
                                 cudaErrorLaunchFailure,
                                 cudaErrorTensorMemoryLeak,
                                 cudaErrorMpsClientTerminated,
                                 cudaErrorExternalDevice,
                                 cudaErrorNoDevice,
                                 cudaErrorDevicesUnavailable};
// More texts of lost GPUs: cudaErrorUnknown in torch's wording (the error's own two words would match too
// much), NVML's, and the kernel log's.
constexpr const char* kOtherWords[] = {"CUDA error: unknown error", "GPU is lost", "fallen off the bus"};

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

bool tells_of_lost_gpu(const std::string& error) {
  return std::any_of(std::begin(kLast), std::end(kLast),
                     [&](cudaError_t code) { return has(error, cudaGetErrorString(code)); }) ||
         std::any_of(std::begin(kOtherWords), std::end(kOtherWords),
                     [&](const char* words) { return has(error, words); });
}

std::string lost_gpu_line(int rank, const std::string& host, const std::string& gpu,
                          const std::string& error) {
  return "rank " + std::to_string(rank) + " on " + host + " has lost " + (gpu.empty() ? "its device" : gpu) +
         ": " + first_line(error) +
         "; on that node `dmesg | grep -i xid` and `nvidia-smi -q` tell more: reset the GPU (nvidia-smi -r), "
         "or leave the node out";
}

void end_job_if_gpu_is_lost(const std::string& error) {
  const std::string told = tells_of_lost_gpu(error) ? error : error_of_gpu_in_use();
  if (!tells_of_lost_gpu(told)) return;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  log_line(printable("failed: " + lost_gpu_line(rank, host_name(), gpu_in_use(), told), ""));
  MpiSession::abort_world(kSystem);
}

}  // namespace shardmark
