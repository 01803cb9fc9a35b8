// Pools of streams, one per device. The streams live as long as the process, as torch's do, because torch's
// allocator remembers them.
#include "device/own_stream.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <map>
#include <mutex>

#include "base/reused.h"

namespace shardmark {
namespace {

std::shared_ptr<const c10::Stream> make_stream(at::Device device) {
  const c10::cuda::CUDAGuard guard(device);
  int lowest = 0, highest = 0;
  C10_CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
  cudaStream_t stream = nullptr;
  C10_CUDA_CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, highest));
  return std::make_shared<const c10::Stream>(
      c10::cuda::getStreamFromExternal(stream, device.index()).unwrap());
}

}  // namespace

std::shared_ptr<const c10::Stream> own_stream(at::Device device) {
  static std::mutex mutex;
  static auto& pools = *new std::map<c10::DeviceIndex, Reused<const c10::Stream>>();
  const std::lock_guard lock(mutex);  // autograd starts operations from its own thread
  return pools[device.index()].get([&] { return make_stream(device); });
}

}  // namespace shardmark
