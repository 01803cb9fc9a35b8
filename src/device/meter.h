// The memory meter of a rank. On the CPU it counts every byte that torch's allocator and
// Communicator::allocate hand out; on a GPU it reads the CUDA caching allocator. Memory is split by what it
// is used for. Buffers inside a transport are not counted: neither ours nor those of MPI and NCCL.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace shardmark {

// parameters, gradients, optimizer: persistent state. transient: gathered parameters and unsharded gradients
// of a strategy. other: activations and the rest. offloaded: what a strategy keeps in host memory instead of
// the device's. It is not part of totals, peaks or the limit, even if the device is the CPU.
enum class MemoryUse { parameters, gradients, optimizer, transient, other, offloaded };
inline constexpr size_t kNumMemoryUses = 6;

struct MemoryReading {
  std::array<int64_t, kNumMemoryUses> bytes{};  // now, by use
  int64_t total = 0;                            // now
  int64_t peak = 0;                             // highest total since reset_peak()
  // On a GPU, the peak of what torch's allocator held, free blocks included.
  int64_t reserved_peak = 0;
  int64_t of(MemoryUse use) const { return bytes[static_cast<size_t>(use)]; }
};

namespace meter {

// Call once, before the first tensor. `gpu` is the index of the device whose allocator is read; -1 on the
// CPU.
void install(int gpu = -1);
MemoryReading read();
void reset_peak();
// Limits the total; 0 means no limit. An allocation beyond it throws OutOfMemory; on a GPU torch's allocator
// throws.
//
// Note [Where memory may run out]: on the CPU an allocation throws only inside a Strict scope, in which a
// rank may fail alone. Elsewhere (in a collective, in an update) the other ranks would wait for a rank that
// threw. There the allocation succeeds, and take_excess() reports it to whoever may throw next.
void set_limit(int64_t bytes);
int64_t limit();
class Strict {
 public:
  explicit Strict(bool strict = true);  // for this thread, while it lives
  ~Strict();
  Strict(const Strict&) = delete;
  Strict& operator=(const Strict&) = delete;

 private:
  bool previous_;
};
// Whether the limit was passed outside Strict since the last call.
bool take_excess();
void throw_on_excess();  // throws OutOfMemory if it was

// Count memory that torch's allocators do not see (MPI windows, ncclMemAlloc).
void add(int64_t bytes, MemoryUse use);
void remove(int64_t bytes, MemoryUse use);
MemoryUse current_use();

// Allocations of this thread inside the scope count as `use`. On a GPU the scope counts what is still held
// when it ends.
class Scope {
 public:
  explicit Scope(MemoryUse use);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  MemoryUse previous_;
  int64_t gpu_bytes_before_;
};

}  // namespace meter
}  // namespace shardmark
