// The one memory meter. On the CPU it counts every byte that torch's allocator and Communicator::allocate
// hand out; on a GPU it reads the CUDA caching allocator. Split by what the memory is for.
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
  int64_t of(MemoryUse use) const { return bytes[static_cast<size_t>(use)]; }
};

namespace meter {

// Once, before the first tensor. gpu: the index of the device whose allocator is read; -1 on the CPU.
void install(int gpu = -1);
MemoryReading read();
void reset_peak();
void set_limit(int64_t bytes);  // of the CPU's total; 0: none. An allocation beyond it throws OutOfMemory

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
