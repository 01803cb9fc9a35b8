// The texts of this folder as kernels: compiled by NVRTC at first use, for the GPU and the shape at hand, and
// launched on torch's current stream. NVRTC needs no GPU, so that a test compiles every text on any machine.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>

#include <array>
#include <string>
#include <vector>

namespace shardmark {

struct KernelLaunch {
  std::string text;               // "layer_norm.cu"
  std::string kernel;             // a template's instance: "layer_norm_forward<768, 8>"
  std::array<int64_t, 2> blocks;  // of the grid: x, y
  int64_t threads;                // of a block
};

// Held by intrusive_ptr, as autograd functions keep it for their backward. Backward runs on another thread.
class KernelLauncher : public torch::CustomClassHolder {
 public:
  // Arguments as the kernel takes them: data_ptr(), int64_t, int, float or double.
  template <class... Arguments>
  void operator()(const KernelLaunch& launch, Arguments... arguments) {
    std::array<void*, sizeof...(Arguments)> places = {&arguments...};
    start(launch, places.data());
  }
  virtual int64_t multiprocessors() const = 0;  // of the GPU

  // The kernels that make parameters' gradients add them to what the parameters have, with one rounding; else
  // that is left to others. Not for backwards in two parts, whose first finds no place for them.
  bool adds_gradients = false;

 private:
  virtual void start(const KernelLaunch& launch, void** arguments) = 0;
};
using Kernels = c10::intrusive_ptr<KernelLauncher>;

// SystemError, at the first launch: NVRTC is missing, or the GPU is older than all that it knows.
Kernels fused_kernels(at::Device gpu);

// For what a GPU's kernels are compiled, capability 90 being 9.0: "sm_90", the GPU's own code, where the
// compiler knows it. Else "compute_121", intermediate code (PTX) for the newest of the GPUs that the compiler
// knows and that are older than this one: its driver compiles that for the GPU itself. known: their
// capabilities.
std::string kernel_architecture(int capability, const std::vector<int>& known);
std::vector<int> known_capabilities();  // to the NVRTC that is loaded

struct CompiledKernel {
  std::string image;  // for the driver: the GPU's code, or PTX
  std::string name;   // in the image
  std::string log;    // what the compiler says: empty, or warnings, or what `option` asked for
};
// architecture: "sm_90", or "compute_90" for PTX. SystemError: the text is wrong.
CompiledKernel compile_kernel(const std::string& text, const std::string& kernel,
                              const std::string& architecture, const char* option = "");

}  // namespace shardmark
