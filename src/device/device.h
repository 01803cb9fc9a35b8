// One interface for CPU and CUDA: number of devices, their names and their peaks.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

namespace shardmark {

int num_gpus();                                  // visible to this process; 0 without a driver
std::string device_name(at::Device device);      // "NVIDIA H200" or the processor's model name
int num_cores();                                 // that this process may run on
int64_t device_memory_bytes(at::Device device);  // of the GPU; of the node, as far as it is granted
int64_t device_used_bytes(at::Device device);    // of a GPU, now, by everything and everyone on it; else 0
// The words of specs/specs.h for what the device computes in by itself, without emulation.
std::vector<std::string> native_precisions(at::Device device);
void use_tf32(bool use);  // for fp32 matrix products and convolutions on a GPU, from now on
// Lets cuDNN time its algorithms when it meets a convolution of new sizes, unless bits are to repeat. The
// first steps take longer, and their memory has room for what is tried.
void search_convolutions(at::Device device);
void use_device(at::Device device);                     // makes a GPU current; nothing on the CPU
void seed_generator(at::Device device, uint64_t seed);  // of what draws without a generator of its own
void synchronize(at::Device device);  // waits for a GPU (device/waiting.h); nothing on the CPU
// A tensor's only element, on the host.
template <class T>
T item(const at::Tensor& value) {
  synchronize(value.device());  // its own wait would be CUDA's
  return value.item<T>();
}
void empty_caches(at::Device device);  // what was freed goes back to the device, and to the system

// FLOP/s of a large square matrix product in this dtype: the fast end of several, about 0.3 s.
double measure_peak_flops(at::Device device, const std::string& precision);
// Dense data-sheet peak by exact device name; NaN for an unknown device, or where its data sheet has none.
double datasheet_peak_flops(const std::string& device_name, const std::string& precision);

}  // namespace shardmark
