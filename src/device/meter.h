// The one memory meter: every byte that torch's CPU allocator or Communicator::allocate hands out on the CPU, and the CUDA
// caching allocator's own counters on a GPU, split by what it is for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace shardmark {

// persistent: parameters, gradients, optimizer. transient: slots and buckets of a strategy. other: activations and the rest.
enum class MemoryUse { parameters, gradients, optimizer, transient, other };
inline constexpr int kNumMemoryUses = 5;

struct MemoryReading {
  std::array<int64_t, kNumMemoryUses> bytes{};  // now, by use
  int64_t total = 0;                            // now
  int64_t peak = 0;                             // highest total since reset_peak()
  int64_t of(MemoryUse use) const { return bytes[static_cast<size_t>(use)]; }
};

namespace meter {

void install();                      // once, before the first tensor: counts torch's CPU allocations
MemoryReading read();
void reset_peak();
void set_limit(int64_t bytes);       // 0: none. Beyond it an allocation throws OutOfMemory
void add(int64_t bytes, MemoryUse use);     // for memory that no allocator of torch sees (shared windows, ncclMemAlloc)
void remove(int64_t bytes, MemoryUse use);
MemoryUse current_use();

// Allocations of this thread inside the scope count as `use`.
class Scope {
 public:
  explicit Scope(MemoryUse use);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  MemoryUse previous_;
};

}  // namespace meter
}  // namespace shardmark
