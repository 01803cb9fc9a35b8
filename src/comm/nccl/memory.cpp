// NCCL communicators and registered memory.
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

// A message is posted before its other end is, and its kernel then waits on the multiprocessors that it has,
// beside the products that are measured. NCCL may take 16 to 32 of them (CTAs) for each; two move tens of
// GB/s over NVLink, which a message of a few MiB hides behind a micro-batch. This number has not been tried
// on several GPUs. NCCL_MAX_CTAS, where it is set, has the last word.
constexpr int kMessageCtas = 2;

ncclConfig_t config_of_messages() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.maxCTAs = kMessageCtas;
  return config;
}

}  // namespace

// Resources are not shared (splitShare stays 0): NCCL then runs the operations of both communicators one
// after the other, and ours are there to overlap; and the memory of one would stay with the other.
std::shared_ptr<NcclComm> NcclComm::split(int color, int key, SplitUse use) const {
  ncclComm_t part = nullptr;
  ncclConfig_t of_messages = config_of_messages();
  ncclConfig_t* const config = use == SplitUse::messages ? &of_messages : nullptr;  // nullptr: as this one's
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
  static auto& all = *new Registrations([](const std::string& failure) {  // tensors outlive statics
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) log_warning(failure);
  });
  return all;
}

namespace {

// Freed in the opposite order of its making: unmapped when no communicator knows it and nothing uses it.
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
      cudaDeviceSynchronize();  // unmapping is not ordered by any stream
      registrations().remove(data_);
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
