// A counting CPU allocator. It keeps the size and the use of each block in a header in front of the block, so
// that counting needs no look-up.
#include "device/meter.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/core/CPUAllocator.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "base/error.h"
#include "base/units.h"

namespace shardmark::meter {
namespace {

std::array<std::atomic<int64_t>, kNumMemoryUses> bytes_by_use;
std::atomic<int64_t> total_bytes;
std::atomic<int64_t> peak_bytes;
std::atomic<int64_t> limit_bytes;
int gpu_index = -1;
// The total by which an allocation outside Strict passed the limit; 0 if none did.
std::atomic<int64_t> excess_bytes;
thread_local bool strict_now = false;
thread_local MemoryUse use_now = MemoryUse::other;

// Keeps the data aligned to a cache line, as torch's own allocator does.
constexpr size_t kHeaderBytes = 64;
struct Header {
  int64_t bytes;
  MemoryUse use;
};
static_assert(sizeof(Header) <= kHeaderBytes);

void release(void* data) {
  if (data == nullptr) return;
  char* block = static_cast<char*>(data) - kHeaderBytes;
  Header header;
  std::memcpy(&header, block, sizeof header);
  remove(header.bytes, header.use);
  std::free(block);
}

struct CountingAllocator final : c10::Allocator {
  // The bytes are counted first, because counting checks the limit. If the system then has no memory, they
  // are taken away again.
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &release, at::kCPU};
    const Header header{static_cast<int64_t>(bytes), use_now};
    add(header.bytes, header.use);
    void* block = nullptr;
    if (posix_memalign(&block, kHeaderBytes, bytes + kHeaderBytes) != 0) {
      remove(header.bytes, header.use);
      throw OutOfMemory("the system could not allocate " + format_bytes(static_cast<double>(bytes)));
    }
    std::memcpy(block, &header, sizeof header);
    void* data = static_cast<char*>(block) + kHeaderBytes;
    return {data, data, &release, at::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
};

constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);

// Note [One limit on a GPU]: memory of torch's allocator and memory that was added here (ncclMemAlloc) share
// one limit. torch's allocator throws c10::OutOfMemoryError at the limit minus the memory added here; every
// add and remove sets it anew. An add counts torch's allocations against the limit, but not its cache,
// because torch empties that when it next lacks memory. Setting no limit lifts the previous one.
void share_limit() {
  static std::mutex one_at_a_time;
  static bool shares = false;
  if (gpu_index < 0) return;
  const std::lock_guard lock(one_at_a_time);
  const int64_t limit = limit_bytes;
  if (limit <= 0 && !shares) return;
  shares = limit > 0;
  const auto gpu = static_cast<c10::DeviceIndex>(gpu_index);
  const auto whole = static_cast<double>(at::cuda::getDeviceProperties(gpu)->totalGlobalMem);
  const double share = shares ? static_cast<double>(limit - total_bytes) / whole : 1.0;
  c10::cuda::CUDACachingAllocator::setMemoryFraction(std::clamp(share, 0.0, 1.0), gpu);
}

int64_t gpu_allocated(bool peak) {
  if (gpu_index < 0) return 0;
  const auto stats =
      c10::cuda::CUDACachingAllocator::getDeviceStats(static_cast<c10::DeviceIndex>(gpu_index));
  const auto& all = stats.allocated_bytes[kAll];
  return peak ? all.peak : all.current;
}

OutOfMemory beyond_limit(int64_t total) {
  return OutOfMemory("out of memory: " + format_bytes(static_cast<double>(total)) +
                     " wanted, the limit of a rank is " + format_bytes(static_cast<double>(limit_bytes)));
}

}  // namespace

void install(int gpu) {
  static CountingAllocator allocator;
  if (gpu < 0) c10::SetCPUAllocator(&allocator, /*priority=*/100);
  gpu_index = gpu;
}

MemoryReading read() {
  MemoryReading reading;
  for (size_t use = 0; use < kNumMemoryUses; ++use) reading.bytes[use] = bytes_by_use[use];
  // On a GPU the counters here hold only what transports allocated; the caching allocator knows the rest. The
  // two peaks may occur at different times, so their sum is an upper bound.
  reading.total = total_bytes + gpu_allocated(false);
  reading.peak = peak_bytes + gpu_allocated(true);
  if (gpu_index >= 0) {
    const auto gpu = static_cast<c10::DeviceIndex>(gpu_index);
    reading.reserved_peak = c10::cuda::CUDACachingAllocator::getDeviceStats(gpu).reserved_bytes[kAll].peak;
  }
  return reading;
}

void reset_peak() {
  peak_bytes = total_bytes.load();
  if (gpu_index >= 0)
    c10::cuda::CUDACachingAllocator::resetPeakStats(static_cast<c10::DeviceIndex>(gpu_index));
}

void set_limit(int64_t bytes) {
  limit_bytes = bytes;
  share_limit();
}

int64_t limit() { return limit_bytes; }

Strict::Strict(bool strict) : previous_(strict_now) { strict_now = strict; }
Strict::~Strict() { strict_now = previous_; }

bool take_excess() { return excess_bytes.exchange(0) > 0; }

void throw_on_excess() {
  if (const int64_t total = excess_bytes.exchange(0); total > 0) throw beyond_limit(total);
}

void add(int64_t bytes, MemoryUse use) {
  if (use == MemoryUse::offloaded) {
    bytes_by_use[static_cast<size_t>(use)] += bytes;
    return;
  }
  // Beyond the limit, an allocation inside Strict throws and counts nothing. Elsewhere it succeeds, and the
  // excess is noted for whoever may throw next (Note [Where memory may run out]).
  const int64_t total = total_bytes += bytes;
  const int64_t limit = limit_bytes;
  if (const int64_t held = limit > 0 ? total + gpu_allocated(false) : 0; held > limit) {
    if (strict_now) {
      total_bytes -= bytes;
      throw beyond_limit(held);
    }
    excess_bytes = held;
  }
  bytes_by_use[static_cast<size_t>(use)] += bytes;
  // Another thread may raise the peak meanwhile; then the larger value stays.
  int64_t peak = peak_bytes;
  while (total > peak && !peak_bytes.compare_exchange_weak(peak, total)) {
  }
  share_limit();
}

void remove(int64_t bytes, MemoryUse use) {
  if (use != MemoryUse::offloaded) total_bytes -= bytes;
  bytes_by_use[static_cast<size_t>(use)] -= bytes;
  try {
    share_limit();
    // The GPU is lost. Whoever calls it next reports that; a destructor must not.
  } catch (const std::exception&) {
  }
}

MemoryUse current_use() { return use_now; }

Scope::Scope(MemoryUse use) : previous_(use_now), gpu_bytes_before_(gpu_allocated(false)) { use_now = use; }

// On a GPU the caching allocator does not say what an allocation was for. So the scope's use is charged with
// what the allocator holds now beyond what it held when the scope began.
Scope::~Scope() {
  if (gpu_index >= 0 && use_now != MemoryUse::offloaded)
    bytes_by_use[static_cast<size_t>(use_now)] += gpu_allocated(false) - gpu_bytes_before_;
  use_now = previous_;
}

}  // namespace shardmark::meter
