// The engine's messages as MPI point-to-point messages, and host memory in huge pages.
#include "comm/mpi/wire.h"

#include <sys/mman.h>

#include <cstdlib>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "comm/host_group.h"

namespace shardmark {
namespace {

constexpr int64_t kHugePage = 2 << 20;

class MpiMessages final : public Messages {
 public:
  explicit MpiMessages(MPI_Comm comm) : comm_(comm) {}

  void send(const void* data, int64_t bytes, int peer, int tag) override {
    MPI_CHECK(
        MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, peer, tag, comm_, &requests_.emplace_back()));
  }
  void receive(void* data, int64_t bytes, int peer, int tag) override {
    MPI_CHECK(
        MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, peer, tag, comm_, &requests_.emplace_back()));
  }
  bool complete() override {
    int complete = 0;
    MPI_CHECK(
        MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &complete, MPI_STATUSES_IGNORE));
    if (complete != 0) requests_.clear();
    return complete != 0;
  }
  bool cancel() override { return requests_.empty(); }  // MPI cannot cancel sends

 private:
  MPI_Comm comm_;
  std::vector<MPI_Request> requests_;
};

}  // namespace

std::unique_ptr<Messages> MpiWire::messages() { return std::make_unique<MpiMessages>(comm_); }

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

std::shared_ptr<char> host_memory(int64_t bytes, MemoryUse use) {
  meter::add(bytes, use);
  const std::shared_ptr<void> counted(nullptr, [bytes, use](void*) { meter::remove(bytes, use); });
  std::shared_ptr<char> memory = host_memory(bytes);
  char* const data = memory.get();
  return {data, [memory = std::move(memory), counted](char*) mutable { memory.reset(); }};
}

}  // namespace shardmark
