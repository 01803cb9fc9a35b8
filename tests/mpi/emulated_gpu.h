// Executes the CUDA kernels of src/kernels on one thread of the CPU. The kernels are compiled here as C++
// without changes. Each CUDA thread has its own context (makecontext(3)). The threads of a block run one
// after the other up to the next barrier or shuffle, so the threads of a warp always make the same progress.
// Blocks run one after the other. Speed, alignment and races within a warp cannot be tested this way.
#pragma once

#include <ATen/ATen.h>
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/launcher.h"

namespace shardmark::emulated {

struct Index {
  int x = 0, y = 0;
};
inline Index threadIdx, blockIdx, blockDim, gridDim;

// The threads of one block, and the scheduler that switches between them.
struct Turns {
  std::function<void()> kernel;
  ucontext_t scheduler = {};
  std::vector<ucontext_t> contexts;
  std::vector<std::unique_ptr<char[]>> stacks;
  std::vector<bool> ended;
  std::vector<float> exchanged;  // values exchanged by shuffles
  int waiting = 0, alive = 0, generation = 0;

  void leave() { swapcontext(&contexts[static_cast<size_t>(threadIdx.x)], &scheduler); }
  void open_barrier_if_all_wait() {
    if (waiting < alive) return;
    waiting = 0;
    ++generation;
  }
  static void enter();
  void run_block(int threads) {
    constexpr size_t kStackBytes = 128 << 10;
    const auto count = static_cast<size_t>(threads);
    contexts.assign(count, {});
    exchanged.assign(count, 0);
    ended.assign(count, false);
    while (stacks.size() < count) stacks.emplace_back(new char[kStackBytes]);
    waiting = 0;
    alive = threads;
    for (size_t i = 0; i < count; ++i) {
      getcontext(&contexts[i]);
      contexts[i].uc_stack.ss_sp = stacks[i].get();
      contexts[i].uc_stack.ss_size = kStackBytes;
      contexts[i].uc_link = &scheduler;
      makecontext(&contexts[i], enter, 0);
    }
    while (alive > 0)
      for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x)
        if (!ended[static_cast<size_t>(threadIdx.x)])
          swapcontext(&scheduler, &contexts[static_cast<size_t>(threadIdx.x)]);
  }
};
inline Turns turns;
inline void Turns::enter() {
  turns.kernel();
  turns.ended[static_cast<size_t>(threadIdx.x)] = true;
  --turns.alive;
  turns.open_barrier_if_all_wait();
}

inline void __syncthreads() {
  const int mine = turns.generation;
  ++turns.waiting;
  turns.open_barrier_if_all_wait();
  do turns.leave();
  while (mine == turns.generation);
}
inline float __shfl_xor_sync(unsigned, float value, int lanes) {
  turns.exchanged[static_cast<size_t>(threadIdx.x)] = value;
  turns.leave();
  const float of_other = turns.exchanged[static_cast<size_t>(threadIdx.x ^ lanes)];
  turns.leave();
  return of_other;
}
inline unsigned atomicMax(unsigned* place, unsigned value) {
  return std::exchange(*place, std::max(*place, value));
}
template <class To, class From>
To same_bits(From from) {
  To to;
  static_assert(sizeof to == sizeof from);
  std::memcpy(&to, &from, sizeof to);
  return to;
}
inline float __uint_as_float(unsigned bits) { return same_bits<float>(bits); }
inline unsigned __float_as_uint(float value) { return same_bits<unsigned>(value); }
inline float __expf(float x) { return std::exp(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }

#define __global__ inline
#define __device__
#define __shared__ static
#define __launch_bounds__(...)
#include "kernels/adamw.cu"
#include "kernels/batch_norm.cu"
#include "kernels/column_sum.cu"
#include "kernels/cross_entropy.cu"
#include "kernels/fp8.cu"
#include "kernels/layer_norm.cu"
#include "kernels/rotary.cu"
#include "kernels/row_norm.cu"
#include "kernels/swiglu.cu"
#undef __global__
#undef __device__
#undef __shared__
#undef __launch_bounds__

// Wraps a kernel so that it takes its arguments as a kernel launch does.
template <class... Arguments>
std::function<void(void**)> unpacked(void (*kernel)(Arguments...)) {
  return [kernel](void** arguments) {
    std::tuple<Arguments...> values;
    const auto copy_all = [&](Arguments&... value) {
      (std::memcpy(&value, *arguments++, sizeof(Arguments)), ...);  // NOLINT(bugprone-sizeof-expression)
    };
    std::apply(copy_all, values);
    std::apply(kernel, values);
  };
}

using NamedKernel = std::pair<const std::string, std::function<void(void**)>>;
#define SHARDMARK_EMULATED(...) \
  ::shardmark::emulated::NamedKernel(#__VA_ARGS__, emulated::unpacked(&emulated::__VA_ARGS__))

class Launcher final : public KernelLauncher {
 public:
  explicit Launcher(std::map<std::string, std::function<void(void**)>> kernels)
      : kernels_(std::move(kernels)) {}
  int64_t multiprocessors() const override { return 2; }

 private:
  void start(const KernelLaunch& launch, void** arguments) override {
    const auto found = kernels_.find(launch.kernel);
    ENSURE(found != kernels_.end(), "no " + launch.kernel + " in the test's list");
    turns.kernel = [&] { found->second(arguments); };
    blockDim = {static_cast<int>(launch.threads), 1};
    gridDim = {static_cast<int>(launch.blocks[0]), static_cast<int>(launch.blocks[1])};
    for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y)
      for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) turns.run_block(blockDim.x);
  }
  std::map<std::string, std::function<void(void**)>> kernels_;
};

}  // namespace shardmark::emulated
