// One face for CPU and CUDA: how many devices there are, what they are called, and their peak.
#pragma once

#include <ATen/ATen.h>

#include <string>

namespace shardmark {

int num_gpus();                                  // visible to this process; 0 without a driver
std::string device_name(at::Device device);      // "NVIDIA H200" or the processor's model name
int num_cores();                                 // that this process may run on
int64_t device_memory_bytes(at::Device device);  // of the GPU, or of the node
void use_device(at::Device device);              // makes a GPU current; nothing on the CPU
void synchronize(at::Device device);             // waits for a GPU; nothing on the CPU
void empty_caches(at::Device device);

// FLOP/s of a large square matrix product in this dtype: the fast end of several, about 0.3 s.
double measure_peak_flops(at::Device device, at::ScalarType dtype);
// Dense data-sheet peak by exact device name; NaN for an unknown device.
double datasheet_peak_flops(const std::string& device_name, at::ScalarType dtype);

}  // namespace shardmark
