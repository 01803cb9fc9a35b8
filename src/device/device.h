// One interface to CPU and CUDA devices: their number, names, memory and peak rates; which GPU this process
// uses; how the host waits for it.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <string>
#include <vector>

namespace shardmark {

int num_gpus();                              // visible to this process; 0 without a driver
std::string device_name(at::Device device);  // "NVIDIA H200" or the processor's model name
int num_cores();                             // that this process may run on
// The memory of the GPU; on the CPU the node's memory, or this process's limit if that is lower.
int64_t device_memory_bytes(at::Device device);
// What is used on the GPU now, by all processes; 0 on the CPU.
int64_t device_used_bytes(at::Device device);
// The precisions that the device computes without emulation, in the words of specs/specs.h.
std::vector<std::string> native_precisions(at::Device device);
// Whether it multiplies matrices of 8-bit floating point, or such with a scale for each block of 32 numbers.
bool has_fp8_products(at::Device device, bool by_block = false);
// For fp32 matrix products and convolutions on a GPU, from now on.
void use_tf32(bool use);
// Lets cuDNN time its algorithms when it meets a convolution of a new shape, unless results must be
// reproducible bit by bit. The first steps take longer then, and their memory peak includes the workspaces of
// the algorithms that were tried.
void search_convolutions(at::Device device);
void use_device(at::Device device);  // makes a GPU current; does nothing on the CPU
// Seeds the default generator, which is used by operations that are not given a generator.
void seed_generator(at::Device device, uint64_t seed);
// Waits until the GPU has completed the current stream (wait_for_device); does nothing on the CPU.
void synchronize(at::Device device);
// Returns the only element of a tensor on the host.
template <class T>
T item(const at::Tensor& value) {
  synchronize(value.device());  // item() alone would wait inside CUDA
  return value.item<T>();
}
// Returns freed memory to the device and to the operating system.
void empty_caches(at::Device device);

// FLOP/s of a large square matrix product in this precision, or in "fp8" or "mxfp8": the fast end of several
// samples, which takes about 0.3 s. NaN if the device has no such product. That of mxfp8 is measured with a
// scale for each matrix, because it is as fast.
double measure_peak_flops(at::Device device, const std::string& precision);
// The dense data-sheet peak by exact device name. NaN if the device is unknown, or if its data sheet has no
// value.
double datasheet_peak_flops(const std::string& device_name, const std::string& precision);

// How the host waits for a GPU. During the wait, communicators check their operations. A wait inside CUDA
// would not end when a network fails, and nobody would learn which operation it waits for.
//
// While it lives, `look` is called several times a second whenever the host waits for a device, and at the
// end of the wait. An exception from `look` ends the wait. It must be used by the thread that waits.
class WhileWaiting {
 public:
  explicit WhileWaiting(std::function<void()> look);
  ~WhileWaiting();
  WhileWaiting(const WhileWaiting&) = delete;
  WhileWaiting& operator=(const WhileWaiting&) = delete;

 private:
  std::function<void()> look_;
};

// Returns when done() returns true. It spins, as CUDA's own waits do, because the end of the wait is part of
// what is timed.
void wait_for_device(const std::function<bool()>& done);

// The GPU that this process made current, for error messages. Call it while the GPU still answers; the name
// is empty on the CPU.
void name_gpu_in_use(const std::string& name);
std::string gpu_in_use();  // "GPU 3 (0000:17:00.0)"

// CUDA's error if the GPU in use cannot be used any more, otherwise empty. Does not wait for the GPU.
std::string error_of_gpu_in_use();

}  // namespace shardmark
