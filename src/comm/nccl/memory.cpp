// NCCL communicators, and device memory that is registered with them.
#include "comm/nccl/memory.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>

#include <cstring>

#include "base/error.h"
#include "base/log.h"
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

namespace {

// The number of CTAs for a message of a pipeline. A receive is posted before its sender is ready; its kernel
// then waits on the multiprocessors that it occupies, next to the matrix products that are being measured. By
// default NCCL may take 16 to 32 CTAs for each message. Two move tens of GB/s over NVLink, which hides a
// message of a few MiB behind a micro-batch. This number has not been tried on several GPUs. NCCL_MAX_CTAS
// overrides it if set.
constexpr int kMessageCtas = 2;

ncclConfig_t config_of_messages() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.maxCTAs = kMessageCtas;
  return config;
}

}  // namespace

// Resources are not shared between the two communicators (splitShare stays 0). If they were, NCCL would run
// their operations one after the other, but ours are meant to overlap; and memory of the one would be kept by
// the other.
std::shared_ptr<NcclComm> NcclComm::split(int color, int key, SplitUse use) const {
  ncclComm_t part = nullptr;
  ncclConfig_t of_messages = config_of_messages();
  ncclConfig_t* const config = use == SplitUse::messages ? &of_messages : nullptr;  // nullptr: inherit
  GPU_CHECK(ncclCommSplit(get(), color < 0 ? NCCL_SPLIT_NOCOLOR : color, key, &part, config));
  return part == nullptr ? nullptr : std::shared_ptr<NcclComm>(new NcclComm(part));
}

NcclComm::~NcclComm() {
  if (comm_ != nullptr) ncclCommDestroy(comm_);
}

std::string NcclComm::enroll(void* data, size_t bytes, void** handle) {
  const ncclResult_t result = ncclCommRegister(get(), data, bytes, handle);
  return result == ncclSuccess ? "" : ncclGetErrorString(result);
}

void NcclComm::dismiss(void* handle) noexcept { ncclCommDeregister(comm_, handle); }

Registrations& registrations() {
  static auto& all =
      *new Registrations([](const std::string& failure) {  // never destroyed: tensors outlive statics
        int rank = 0;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        if (rank == 0) log_warning(failure);
      });
  return all;
}

namespace {

// Device memory from ncclMemAlloc. It is freed in the reverse order of its making: first all work on the
// device completes, then the communicators forget it, then it is unmapped.
class RegisteredMemory {
 public:
  RegisteredMemory(int64_t bytes, at::Device device)
      : device_(device), bytes_(bytes), use_(meter::current_use()) {
    const c10::cuda::CUDAGuard guard(device_);
    meter::add(bytes_, use_);
    if (bytes_ == 0) return;
    if (!allocate()) {
      meter::remove(bytes_, use_);
      throw OutOfMemory("ncclMemAlloc could not allocate " + format_bytes(static_cast<double>(bytes_)) +
                        " on " + device_.str());
    }
    registrations().add(data_, static_cast<size_t>(bytes_));
  }
  ~RegisteredMemory() {
    if (data_ != nullptr) {
      const c10::cuda::CUDAGuard guard(device_);
      cudaDeviceSynchronize();  // no stream orders unmapping
      registrations().remove(data_);
      ncclMemFree(data_);
    }
    meter::remove(bytes_, use_);
  }
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;

  void* data() const { return data_; }

 private:
  // If the memory is held by the cache of torch's allocator, that cache is emptied, and the allocation is
  // tried once more.
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

  at::Device device_;
  int64_t bytes_;
  MemoryUse use_;
  void* data_ = nullptr;
};

}  // namespace

at::Tensor nccl_tensor(int64_t numel, at::ScalarType dtype, at::Device device) {
  const int64_t bytes = numel * static_cast<int64_t>(at::elementSize(dtype));
  auto memory = std::make_shared<RegisteredMemory>(bytes, device);
  void* data = memory->data();
  if (bytes > 0)
    GPU_CHECK(
        cudaMemsetAsync(data, 0, static_cast<size_t>(bytes), at::cuda::getCurrentCUDAStream(device.index())));
  return at::from_blob(
      data, {numel}, [memory = std::move(memory)](void*) mutable { memory.reset(); },
      at::TensorOptions().dtype(dtype).device(device), device);
}

}  // namespace shardmark
