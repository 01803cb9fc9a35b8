// Facts about a device (its name, its memory, its matrix product rate, measured or from the data sheet), the
// functions that are called while the host waits for it, and the name of the GPU in use.
#include "device/device.h"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>
#include <malloc.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "base/node.h"
#include "base/stats.h"
#include "device/nvml.h"
#include "device/timeline.h"

namespace shardmark {
namespace {

// The value of a key in /proc/cpuinfo, for the first core; empty if it is not there.
std::string cpuinfo(const std::string& key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key)) return line.substr(line.find(':') + 2);
  return "";
}

}  // namespace

// CUDA is asked directly. torch would print a warning about an old driver to stderr, once per rank.
int num_gpus() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  static_cast<void>(cudaGetLastError());  // clears it; else the next call reports it
  return 0;
}

std::string device_name(at::Device device) {
  if (device.is_cuda()) return at::cuda::getDeviceProperties(device.index())->name;
  const std::string name = cpuinfo("model name");
  return name.empty() ? "unknown processor" : name;
}

int num_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  return sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : 1;
}

int64_t device_memory_bytes(at::Device device) {
  if (device.is_cuda())
    return static_cast<int64_t>(at::cuda::getDeviceProperties(device.index())->totalGlobalMem);
  const auto whole = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  const int64_t granted = granted_memory_bytes();
  return granted > 0 ? std::min(whole, granted) : whole;
}

int64_t device_used_bytes(at::Device device) {
  if (!device.is_cuda()) return 0;
  const c10::cuda::CUDAGuard guard(device);
  size_t free_bytes = 0, total_bytes = 0;
  C10_CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
  return static_cast<int64_t>(total_bytes - free_bytes);
}

bool has_fp8_products(at::Device device, bool by_block) {
  if (!device.is_cuda()) return false;
  constexpr int kAda = 89;        // compute capability 8.9
  constexpr int kBlackwell = 10;  // 10.x, of data centres; consumer cards are 12.x
  const auto* const properties = at::cuda::getDeviceProperties(device.index());
  return by_block ? properties->major == kBlackwell : 10 * properties->major + properties->minor >= kAda;
}

std::vector<std::string> native_precisions(at::Device device) {
  std::vector<std::string> names = {"fp32", "fp64"};
  if (device.is_cuda()) {
    const int major = at::cuda::getDeviceProperties(device.index())->major;
    names.emplace_back("fp16");
    if (major >= 8) names.insert(names.end(), {"tf32", "bf16"});
  } else {
    const std::string flags = cpuinfo("flags") + " ";
    const auto has = [&](const char* flag) { return flags.find(flag) != std::string::npos; };
    if (has(" avx512_bf16 ") || has(" amx_bf16 ")) names.emplace_back("bf16");
    if (has(" avx512_fp16 ") || has(" amx_fp16 ")) names.emplace_back("fp16");
  }
  return names;
}

void use_tf32(bool use) {
  at::globalContext().setAllowTF32CuBLAS(use);
  at::globalContext().setAllowTF32CuDNN(use);
}

void search_convolutions(at::Device device) {
  auto& context = at::globalContext();
  if (device.is_cuda()) context.setBenchmarkCuDNN(!context.deterministicCuDNN());
}

void use_device(at::Device device) {
  name_gpu_in_use("");
  if (!device.is_cuda()) return;
  c10::cuda::set_device(device.index());
  at::globalContext().lazyInitDevice(at::kCUDA);  // the caching allocator needs it
  name_gpu_in_use("GPU " + std::to_string(device.index()) + " (" + pci_bus_id(device) + ")");
}

void seed_generator(at::Device device, uint64_t seed) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  generator.set_current_seed(seed);
}

// An event behind all work of the current stream is polled, and not waited for inside CUDA, so that failures
// are noticed meanwhile (WhileWaiting).
void synchronize(at::Device device) {
  if (!device.is_cuda()) return;
  at::cuda::CUDAEvent end;
  end.record(at::cuda::getCurrentCUDAStream(device.index()));
  wait_for_device([&] { return end.query(); });
}

void empty_caches(at::Device device) {
  if (device.is_cuda()) c10::cuda::CUDACachingAllocator::emptyCache();
  // Freed blocks between live ones stay in the heap otherwise: 120 MB more on rank 0 after 2,000
  // configurations.
  ::malloc_trim(0);
}

namespace {

// A function that multiplies two random matrices n x n.
std::function<void()> random_product(at::Device device, const std::string& precision, int64_t n) {
  const at::ScalarType dtype = precision == "fp64"   ? at::kDouble
                               : precision == "bf16" ? at::kBFloat16
                               : precision == "fp16" ? at::kHalf
                                                     : at::kFloat;
  use_tf32(precision == "tf32");
  const auto options = at::TensorOptions().device(device).dtype(dtype);
  // The values are random. On matrices of ones a GPU draws less power and runs 12 % faster than on the values
  // of any training.
  const at::Tensor a = at::rand({n, n}, options), b = at::rand({n, n}, options);
  if (precision == "fp8" || precision == "mxfp8") {
    const at::Tensor one = at::ones({}, options);
    return [one, left = a.to(at::kFloat8_e4m3fn), right = b.to(at::kFloat8_e4m3fn)] {
      at::_scaled_mm(left, right.t(), one, one, std::nullopt, std::nullopt, at::kBFloat16,
                     /*use_fast_accum=*/true);
    };
  }
  return [a, b, c = at::mm(a, b)]() mutable { at::mm_out(c, a, b); };
}

}  // namespace

double measure_peak_flops(at::Device device, const std::string& precision) {
  for (const bool by_block : {false, true})
    if (precision == (by_block ? "mxfp8" : "fp8") && !has_fp8_products(device, by_block)) return std::nan("");
  const int64_t n = device.is_cuda() ? 8192 : 768;
  const std::function<void()> multiply = random_product(device, precision, n);
  multiply();
  std::vector<double> times;
  // The clocks of a GPU rise and fall during the first tenths of a second, so all of them are measured. On
  // cores, the fast end is known once the three fastest products agree within 1 %. Every run waits for this.
  const auto is_known = [&] {
    if (device.is_cuda() || times.size() < 8) return false;
    std::partial_sort(times.begin(), times.begin() + 3, times.end());
    return times[2] <= 1.01 * times[0];
  };
  for (const double begin = now_s(); times.size() < 5 || (now_s() - begin < 0.3 && !is_known());) {
    synchronize(device);
    const double start = now_s();
    multiply();
    synchronize(device);
    times.push_back(now_s() - start);
  }
  const auto side = static_cast<double>(n);
  // A peak is the fast end of the samples; slow ones were disturbed.
  return 2 * side * side * side / quantile(times, 0.1);
}

double datasheet_peak_flops(const std::string& device_name, const std::string& precision) {
  // Dense TFLOP/s; if a data sheet states only the rate with sparsity, half of that. fp32 without tensor
  // cores, fp64 with them, as cuBLAS multiplies. `half` is bf16, and fp16 with sums in fp32. NaN: the data
  // sheet does not say, or the device has none. mxfp8 is as fast as fp8, where the device has it.
  struct Row {
    const char* name;
    double fp32, fp64, tf32, half, fp8 = std::numeric_limits<double>::quiet_NaN();
    bool has_mxfp8 = false;
  };
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  static constexpr Row kRows[] = {
      // "NVIDIA A100 Tensor Core GPU", data sheet: SXM and PCIe alike.
      {"NVIDIA A100-SXM4-40GB", 19.5, 19.5, 156, 312},
      {"NVIDIA A100-SXM4-80GB", 19.5, 19.5, 156, 312},
      {"NVIDIA A100-PCIE-40GB", 19.5, 19.5, 156, 312},
      {"NVIDIA A100 80GB PCIe", 19.5, 19.5, 156, 312},
      // "NVIDIA H100 Tensor Core GPU", data sheet: SXM and NVL (of one GPU); PCIe from its first edition.
      {"NVIDIA H100 80GB HBM3", 67, 67, 494.5, 989, 1979},
      {"NVIDIA H100 NVL", 60, 60, 417.5, 835.5, 1670.5},
      {"NVIDIA H100 PCIe", 51, 51, 378, 756.5, 1513},
      // "NVIDIA H200 Tensor Core GPU", data sheet: SXM.
      {"NVIDIA H200", 67, 67, 494.5, 989, 1979},
      // "NVIDIA Blackwell", data sheet: one GPU of HGX B200, and one of GB200 NVL72.
      {"NVIDIA B200", 75, 37, 1100, 2250, 4500, true},
      {"NVIDIA GB200", 80, 40, 1250, 2500, 5000, true},
      // "NVIDIA GB300 NVL72", product page: 360 PFLOP/s of FP8 on 72 GPUs without sparsity, half of that in
      // 16 bits, and a quarter in TF32. Pages differ about FP32.
      {"NVIDIA GB300", kUnknown, kUnknown, 1250, 2500, 5000, true},
      // "NVIDIA L40S", data sheet.
      {"NVIDIA L40S", 91.6, kUnknown, 183, 362.05, 733},
      // "NVIDIA RTX 6000 Ada Generation", data sheet. It states fp32, and 1,457 for fp8 with sparsity; `half`
      // is a quarter of that and tf32 an eighth, by the ratios of "NVIDIA Ada GPU Architecture".
      {"NVIDIA RTX 6000 Ada Generation", 91.1, kUnknown, 182.1, 364.2, 728.5},
  };
  for (const Row& row : kRows) {
    if (device_name != row.name) continue;
    const double tera = precision == "fp32"    ? row.fp32
                        : precision == "fp64"  ? row.fp64
                        : precision == "tf32"  ? row.tf32
                        : precision == "fp8"   ? row.fp8
                        : precision == "mxfp8" ? (row.has_mxfp8 ? row.fp8 : kUnknown)
                                               : row.half;
    return tera * 1e12;
  }
  return std::nan("");
}

namespace {

constexpr double kLookEveryS = 0.05;

// Never destroyed, because communicators may be destroyed later than statics.
std::vector<const std::function<void()>*>& looks() {
  static auto* const all = new std::vector<const std::function<void()>*>;
  return *all;
}

}  // namespace

WhileWaiting::WhileWaiting(std::function<void()> look) : look_(std::move(look)) { looks().push_back(&look_); }
WhileWaiting::~WhileWaiting() { std::erase(looks(), &look_); }

void wait_for_device(const std::function<bool()>& done) {
  const auto look = [] {
    for (const auto* one : looks()) (*one)();
  };
  for (double looked_s = now_s(); !done();) {
    if (now_s() - looked_s < kLookEveryS) continue;
    look();
    looked_s = now_s();
  }
  look();  // notes what has completed since
}

namespace {

std::string name_in_use;

}  // namespace

void name_gpu_in_use(const std::string& name) { name_in_use = name; }
std::string gpu_in_use() { return name_in_use; }

std::string error_of_gpu_in_use() {
  if (name_in_use.empty()) return "";
  const cudaError_t state = cudaStreamQuery(nullptr);  // any call reports a lost context
  static_cast<void>(cudaGetLastError());               // else the next call reports it
  if (state == cudaSuccess || state == cudaErrorNotReady) return "";
  return std::string("CUDA error: ") + cudaGetErrorString(state);
}

}  // namespace shardmark
