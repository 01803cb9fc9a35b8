// NCCL communicators and registered memory.
#include "comm/nccl/memory.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>

#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "comm/nccl/check.h"
#include "device/meter.h"

namespace shardmark {

NcclComm::NcclComm(const HostGroup& group, at::Device device) {
  const c10::cuda::CUDAGuard guard(device);
  ncclUniqueId id = {};
  if (group.rank() == 0) GPU_CHECK(ncclGetUniqueId(&id));
  const std::string text = group.broadcast(std::string(id.internal, sizeof(id.internal)), 0);
  std::memcpy(id.internal, text.data(), sizeof(id.internal));
  GPU_CHECK(ncclCommInitRank(&comm_, group.size(), id, group.rank()));
}

NcclComm::~NcclComm() {
  if (comm_ != nullptr) ncclCommDestroy(comm_);
}

ncclComm_t NcclComm::get() const {
  if (comm_ == nullptr) throw SystemError("the communicator was aborted");
  return comm_;
}

void NcclComm::abort() noexcept {
  if (comm_ != nullptr) ncclCommAbort(std::exchange(comm_, nullptr));
}

namespace {

// Freed in the opposite order of its making: unregistered while the communicator lives, unmapped when nothing
// uses it.
class RegisteredMemory {
 public:
  RegisteredMemory(std::shared_ptr<NcclComm> comm, int64_t bytes, at::Device device)
      : comm_(std::move(comm)), device_(device), bytes_(bytes), use_(meter::current_use()) {
    const c10::cuda::CUDAGuard guard(device_);
    meter::add(bytes_, use_);
    if (bytes_ == 0) return;
    if (!allocate()) {
      meter::remove(bytes_, use_);
      throw OutOfMemory("ncclMemAlloc could not allocate " + format_bytes(static_cast<double>(bytes_)) +
                        " on " + device_.str());
    }
    // Not every network can register; collectives then stage as they do for any memory.
    if (ncclCommRegister(comm_->get(), data_, static_cast<size_t>(bytes_), &handle_) != ncclSuccess)
      handle_ = nullptr;
  }
  ~RegisteredMemory() {
    if (data_ != nullptr) {
      const c10::cuda::CUDAGuard guard(device_);
      cudaDeviceSynchronize();  // unmapping is not ordered by any stream
      if (handle_ != nullptr && comm_->is_alive()) ncclCommDeregister(comm_->get(), handle_);
      ncclMemFree(data_);
    }
    meter::remove(bytes_, use_);
  }
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;

  void* data() const { return data_; }

 private:
  // Where the memory lies in the cache of torch's allocator, that is emptied, and it is tried once more.
  bool allocate() {
    const auto size = static_cast<size_t>(bytes_);
    if (ncclMemAlloc(&data_, size) == ncclSuccess) return true;
    static_cast<void>(cudaGetLastError());
    c10::cuda::CUDACachingAllocator::emptyCache();
    if (ncclMemAlloc(&data_, size) == ncclSuccess) return true;
    static_cast<void>(cudaGetLastError());
    data_ = nullptr;
    return false;
  }

  std::shared_ptr<NcclComm> comm_;
  at::Device device_;
  int64_t bytes_;
  MemoryUse use_;
  void* data_ = nullptr;
  void* handle_ = nullptr;
};

}  // namespace

at::Tensor nccl_tensor(const std::shared_ptr<NcclComm>& comm, int64_t numel, at::ScalarType dtype,
                       at::Device device) {
  const int64_t bytes = numel * static_cast<int64_t>(at::elementSize(dtype));
  auto memory = std::make_shared<RegisteredMemory>(comm, bytes, device);
  void* data = memory->data();
  if (bytes > 0)
    GPU_CHECK(
        cudaMemsetAsync(data, 0, static_cast<size_t>(bytes), at::cuda::getCurrentCUDAStream(device.index())));
  return at::from_blob(
      data, {numel}, [memory = std::move(memory)](void*) mutable { memory.reset(); },
      at::TensorOptions().dtype(dtype).device(device), device);
}

}  // namespace shardmark
