// Compiles the CUDA source texts of this folder with NVRTC at first use, for the GPU and the shape at hand,
// and launches them on torch's current stream. NVRTC needs no GPU, so a test compiles every text on any
// machine.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>

#include <array>
#include <map>
#include <string>
#include <vector>

namespace shardmark {

// The CUDA source texts of this folder, which the build embeds in the program, by file name: "layer_norm.cu".
const std::map<std::string, std::string>& kernel_texts();

// One launch of a kernel.
struct KernelLaunch {
  std::string text;               // "layer_norm.cu"
  std::string kernel;             // a template's instance: "layer_norm_forward<768, 8>"
  std::array<int64_t, 2> blocks;  // in the grid: x, y
  int64_t threads;                // in a block
};

// It is held by intrusive_ptr, because autograd functions keep it for their backward, which runs on another
// thread.
class KernelLauncher : public torch::CustomClassHolder {
 public:
  // Arguments must have exactly the types that the kernel takes: data_ptr(), int64_t, int, float or double.
  template <class... Arguments>
  void operator()(const KernelLaunch& launch, Arguments... arguments) {
    std::array<void*, sizeof...(Arguments)> places = {&arguments...};
    start(launch, places.data());
  }
  virtual int64_t multiprocessors() const = 0;  // of the GPU

  // If true, kernels that compute parameter gradients add them to the existing gradients, with one rounding;
  // otherwise autograd accumulates them. Must be false for a backward in two parts (input gradients first,
  // weight gradients later), because the first part finds no gradients to add to.
  bool adds_gradients = false;

 private:
  virtual void start(const KernelLaunch& launch, void** arguments) = 0;
};
using Kernels = c10::intrusive_ptr<KernelLauncher>;

// SystemError is thrown at the first launch if NVRTC is missing, or if the GPU is older than all that NVRTC
// knows.
Kernels fused_kernels(at::Device gpu);
// Whether this program was built with a CUDA whose runtime loads them, 12.8 or newer. Otherwise
// fused_kernels() throws a UsageError.
bool loads_kernels();

// The architecture to compile for. `capability` 90 means 9.0, `known` are the capabilities that the compiler
// knows. If it knows the GPU, the result is the GPU's own code, "sm_90". Otherwise it is intermediate code
// (PTX), "compute_121", for the newest GPU that the compiler knows and that is older than this one; the
// driver then compiles it for the GPU.
std::string kernel_architecture(int capability, const std::vector<int>& known);
std::vector<int> known_capabilities();  // to the NVRTC that is loaded

struct CompiledKernel {
  std::string image;  // the GPU's code, or PTX for the driver
  std::string name;   // of the kernel in the image
  // The compiler's output: empty, or warnings, or what `option` asked for.
  std::string log;
};
// `architecture` is "sm_90", or "compute_90" for PTX. Throws SystemError if the text does not compile.
CompiledKernel compile_kernel(const std::string& text, const std::string& kernel,
                              const std::string& architecture, const char* option = "");

}  // namespace shardmark
