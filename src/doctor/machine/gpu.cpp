// Facts about GPUs. The constants are NVML's own (nvml.h).
#include "doctor/machine/gpu.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "device/device.h"
#include "device/nvml.h"

namespace shardmark::machine {
namespace {

constexpr int kMultiprocessorClock = 1, kUncorrected = 1, kSinceDriverLoad = 0;

// The structure of nvmlDeviceGetMemoryInfo.
struct MemoryInfo {
  unsigned long long total, free, used;
};

std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (size_t i = 0; i < sizeof uuid.bytes; ++i)
    text += fmt::format("{}{:02x}", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                        static_cast<unsigned char>(uuid.bytes[i]));
  return text;
}

// Converts NVML's milliwatts; 0 means unknown.
int64_t watts(unsigned milliwatts) { return milliwatts == 0 ? doctor::kUnknown : milliwatts / 1000; }
int64_t known(unsigned number) { return number == 0 ? doctor::kUnknown : number; }

// Why CUDA shows no GPU, with CUDA's name of the error.
std::string error_of_cuda() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  static_cast<void>(cudaGetLastError());  // clears it; else the next call reports it
  if (error == cudaSuccess) return "";
  return fmt::format("{}: {}", cudaGetErrorName(error), cudaGetErrorString(error));
}

// The number of this process's GPUs that CUDA can reach from this one only through host memory.
int64_t num_unreachable(int device, int64_t visible) {
  int64_t num = 0;
  for (int peer = 0; peer < visible; ++peer) {
    int reaches = 1;
    if (peer == device || cudaDeviceCanAccessPeer(&reaches, device, peer) != cudaSuccess) continue;
    num += reaches == 0;
  }
  return num;
}

// If this rank uses no GPU: adds the oldest GPU that NVML shows, which is the one that CUDA most likely
// refuses.
void add_oldest(doctor::GpuFacts& facts, const Nvml& nvml) {
  auto* capability_of = nvml.find<int(void*, int*, int*)>("nvmlDeviceGetCudaComputeCapability");
  auto* name_of = nvml.find<int(void*, char*, unsigned)>("nvmlDeviceGetName");
  for (int64_t index = 0; index < facts.in_node; ++index) {
    void* const gpu =
        nvml.read<void*>("nvmlDeviceGetHandleByIndex_v2", nullptr, static_cast<unsigned>(index));
    int major = 0, minor = 0;
    if (gpu == nullptr || capability_of == nullptr || capability_of(gpu, &major, &minor) != 0) continue;
    const int64_t capability = 10 * major + minor;
    if (facts.capability != doctor::kUnknown && capability >= facts.capability) continue;
    facts.capability = capability;
    char name[96] = "";
    if (name_of != nullptr && name_of(gpu, name, sizeof name) == 0) facts.name_in_node = name;
  }
}

}  // namespace

// Looks at the PCI bus in /sys, which shows cards without a driver, too. 0x10de is NVIDIA. The class 0x0302
// is a 3D controller (a compute card without a screen), and 0x0300 is a display adapter.
GpusOnBus gpus_on_bus(const std::string& devices) {
  GpusOnBus found;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(devices, none)) {
    std::string vendor, kind;
    std::ifstream(entry.path() / "vendor") >> vendor;
    std::ifstream(entry.path() / "class") >> kind;
    if (vendor != "0x10de") continue;
    found.computing += kind.starts_with("0x0302");
    found.screens += kind.starts_with("0x0300");
  }
  return found;
}

int numa_of_pci(const std::string& pci_bus_id) {
  std::string id = pci_bus_id;
  std::transform(id.begin(), id.end(), id.begin(), [](unsigned char c) { return std::tolower(c); });
  std::ifstream file("/sys/bus/pci/devices/" + id + "/numa_node");
  int numa = -1;
  return file >> numa ? numa : -1;
}

doctor::GpuFacts gpu_facts(at::Device device) {
  doctor::GpuFacts facts;
  facts.visible = num_gpus();
  if (facts.visible == 0) facts.cuda_error = error_of_cuda();
  const GpusOnBus on_bus = gpus_on_bus();
  facts.on_bus = on_bus.computing;
  facts.screens_on_bus = on_bus.screens;
  cudaDeviceProp properties{};
  if (!device.is_cuda() || cudaGetDeviceProperties(&properties, device.index()) != cudaSuccess) return facts;
  facts.name = properties.name;
  facts.capability = 10 * properties.major + properties.minor;
  facts.uuid = uuid_text(properties.uuid);
  facts.pci = pci_bus_id(device);
  facts.numa = numa_of_pci(facts.pci);
  facts.unreachable = num_unreachable(device.index(), facts.visible);
  return facts;
}

std::string add_nvml(doctor::GpuFacts& facts, const std::string& library) {
  const auto nvml = Nvml::open(library);
  if (!nvml) return "";  // no driver, a broken one, or a container
  facts.in_node = nvml->read<unsigned>("nvmlDeviceGetCount_v2", 0);
  char driver[96] = "";
  if (auto* version = nvml->find<int(char*, unsigned)>("nvmlSystemGetDriverVersion"))
    version(driver, sizeof driver);
  if (facts.pci.empty()) add_oldest(facts, *nvml);
  void* const gpu = facts.pci.empty() ? nullptr : nvml->device(facts.pci);
  if (gpu == nullptr) return driver;
  facts.clock_mhz = known(nvml->read<unsigned>("nvmlDeviceGetClockInfo", 0, gpu, kMultiprocessorClock));
  facts.most_clock_mhz =
      known(nvml->read<unsigned>("nvmlDeviceGetMaxClockInfo", 0, gpu, kMultiprocessorClock));
  facts.set_clock_mhz =
      known(nvml->read<unsigned>("nvmlDeviceGetApplicationsClock", 0, gpu, kMultiprocessorClock));
  facts.power_cap_w = watts(nvml->read<unsigned>("nvmlDeviceGetPowerManagementLimit", 0, gpu));
  facts.default_cap_w = watts(nvml->read<unsigned>("nvmlDeviceGetPowerManagementDefaultLimit", 0, gpu));
  facts.throttle = static_cast<int64_t>(
      nvml->read<unsigned long long>("nvmlDeviceGetCurrentClocksThrottleReasons", 0, gpu));
  facts.pcie_width = known(nvml->read<unsigned>("nvmlDeviceGetCurrPcieLinkWidth", 0, gpu));
  facts.most_pcie_width = known(nvml->read<unsigned>("nvmlDeviceGetMaxPcieLinkWidth", 0, gpu));
  facts.compute_mode = nvml->read<int>("nvmlDeviceGetComputeMode", 0, gpu);
  facts.uncorrected_errors = static_cast<int64_t>(
      nvml->read<unsigned long long>("nvmlDeviceGetTotalEccErrors", 0, gpu, kUncorrected, kSinceDriverLoad));
  unsigned pending = 0;
  if (auto* mig = nvml->find<int(void*, unsigned*, unsigned*)>("nvmlDeviceGetMigMode")) {
    unsigned current = 0;
    facts.mig = mig(gpu, &current, &pending) == 0 && current != 0;
  }
  const auto memory = nvml->read<MemoryInfo>("nvmlDeviceGetMemoryInfo", {}, gpu);
  if (memory.total > 0) facts.foreign_bytes = static_cast<int64_t>(memory.used);
  return driver;
}

}  // namespace shardmark::machine
