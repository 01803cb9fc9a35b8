// What a device is called, what it holds, and how fast it multiplies.
#include "device/device.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <sched.h>
#include <unistd.h>

#include <cmath>
#include <fstream>

#include "base/stats.h"
#include "device/timeline.h"

namespace shardmark {

int num_gpus() { return static_cast<int>(c10::cuda::device_count()); }

std::string device_name(at::Device device) {
  if (device.is_cuda()) return at::cuda::getDeviceProperties(device.index())->name;
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown processor";
}

int num_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  return sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : 1;
}

int64_t device_memory_bytes(at::Device device) {
  if (device.is_cuda())
    return static_cast<int64_t>(at::cuda::getDeviceProperties(device.index())->totalGlobalMem);
  return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
}

void use_device(at::Device device) {
  if (device.is_cuda()) c10::cuda::set_device(device.index());
}

void synchronize(at::Device device) {
  if (device.is_cuda()) at::cuda::getCurrentCUDAStream(device.index()).synchronize();
}

void empty_caches(at::Device device) {
  if (device.is_cuda()) c10::cuda::CUDACachingAllocator::emptyCache();
}

double measure_peak_flops(at::Device device, at::ScalarType dtype) {
  const int64_t n = device.is_cuda() ? 8192 : 768;
  const auto options = at::TensorOptions().device(device).dtype(dtype);
  const at::Tensor a = at::ones({n, n}, options);
  const at::Tensor b = at::ones({n, n}, options);
  at::Tensor c = at::mm(a, b);
  std::vector<double> times;
  for (const double begin = now_s(); times.size() < 5 || now_s() - begin < 0.3;) {
    synchronize(device);
    const double start = now_s();
    at::mm_out(c, a, b);
    synchronize(device);
    times.push_back(now_s() - start);
  }
  const auto side = static_cast<double>(n);
  return 2 * side * side * side /
         quantile(times, 0.1);  // a peak: the fast end, slow samples are disturbances
}

double datasheet_peak_flops(const std::string& device_name, at::ScalarType dtype) {
  struct Row {
    const char* name;
    double fp32, fp64,
        half;  // TFLOP/s, dense, fp32 without tensor cores; source: NVIDIA's data sheets of each device
  };
  static constexpr Row kRows[] = {
      {"NVIDIA A100-SXM4-40GB", 19.5, 9.7, 312},
      {"NVIDIA A100-SXM4-80GB", 19.5, 9.7, 312},
      {"NVIDIA H100 80GB HBM3", 67, 34, 989},
      {"NVIDIA H200", 67, 34, 989},
  };
  for (const Row& row : kRows) {
    if (device_name != row.name) continue;
    const double tera = dtype == at::kFloat ? row.fp32 : dtype == at::kDouble ? row.fp64 : row.half;
    return tera * 1e12;
  }
  return std::nan("");
}

}  // namespace shardmark
