// Page-aligned memory, and tensors in it that the meter counts.
#include "comm/mpi/memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/units.h"
#include "device/meter.h"

namespace shardmark {
namespace {

constexpr int64_t kHugePage = 2 << 20;

}  // namespace

std::shared_ptr<char> host_memory(int64_t bytes) {
  // Within a node Open MPI lets a peer read our memory directly (cross-memory attach): the kernel pins the
  // pages and copies once. With huge pages there are fewer pages to pin, so the read is cheaper.
  const int64_t alignment = bytes >= kHugePage ? kHugePage : 4096;
  const int64_t size = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(static_cast<size_t>(alignment), static_cast<size_t>(size));
  if (memory == nullptr && size > 0)
    throw OutOfMemory("the system could not allocate " + format_bytes(static_cast<double>(bytes)));
  if (alignment == kHugePage) madvise(memory, static_cast<size_t>(size), MADV_HUGEPAGE);  // a hint: may fail
  return {static_cast<char*>(memory), [](char* data) { std::free(data); }};
}

at::Tensor host_tensor(int64_t numel, at::ScalarType dtype) {
  const int64_t bytes = numel * static_cast<int64_t>(at::elementSize(dtype));
  const MemoryUse use = meter::current_use();
  meter::add(bytes, use);
  std::shared_ptr<void> counted(nullptr, [bytes, use](void*) { meter::remove(bytes, use); });
  std::shared_ptr<char> memory = host_memory(bytes);
  void* const data = memory.get();
  std::memset(data, 0, static_cast<size_t>(bytes));
  // The memory is freed before the meter is told, so that the meter never shows less than there is.
  auto release = [counted = std::move(counted), memory = std::move(memory)](void*) mutable {
    memory.reset();
    counted.reset();
  };
  return at::from_blob(data, {numel}, std::move(release), dtype);
}

}  // namespace shardmark
