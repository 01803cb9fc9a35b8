// The one memory meter. On the CPU it counts every byte that torch's allocator and Communicator::allocate
// hand out; on a GPU it reads the CUDA caching allocator. Buffers inside a transport are not counted, neither
// ours nor those of MPI and NCCL. Split by what the memory is for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace shardmark {

// persistent: parameters, gradients, optimizer. transient: slots of a strategy. other: activations and the
// rest. offloaded: what a strategy keeps in host memory beside the device's; no part of totals, peaks or
// limit, also where the device is the CPU.
enum class MemoryUse { parameters, gradients, optimizer, transient, other, offloaded };
inline constexpr size_t kNumMemoryUses = 6;

struct MemoryReading {
  std::array<int64_t, kNumMemoryUses> bytes{};  // now, by use
  int64_t total = 0;                            // now
  int64_t peak = 0;                             // highest total since reset_peak()
  int64_t reserved_peak = 0;                    // of a GPU: what torch's allocator held, free blocks with it
  int64_t of(MemoryUse use) const { return bytes[static_cast<size_t>(use)]; }
};

namespace meter {

// Once, before the first tensor. gpu: the index of the device whose allocator is read; -1 on the CPU.
void install(int gpu = -1);
MemoryReading read();
void reset_peak();
// Of the total; 0: none. An allocation beyond it throws OutOfMemory; on a GPU torch's allocator does.
//
// Note [Where memory may run out]: on the CPU only inside a Strict scope, in which a rank may fail by itself.
// Elsewhere (in a collective, in an update) the other ranks would wait for a rank that threw: there the
// allocation succeeds, and take_excess() tells it to whoever may throw next.
void set_limit(int64_t bytes);
int64_t limit();
class Strict {
 public:
  explicit Strict(bool strict = true);  // of this thread, as long as it lives
  ~Strict();
  Strict(const Strict&) = delete;
  Strict& operator=(const Strict&) = delete;

 private:
  bool previous_;
};
bool take_excess();      // whether the limit was passed outside Strict since the last call
void throw_on_excess();  // OutOfMemory if it was

// For memory that no allocator of torch sees (MPI windows, ncclMemAlloc).
void add(int64_t bytes, MemoryUse use);
void remove(int64_t bytes, MemoryUse use);
MemoryUse current_use();

// Allocations of this thread inside the scope count as `use`. On a GPU: what is still held when the scope
// ends does.
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
