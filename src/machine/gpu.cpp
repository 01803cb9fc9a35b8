// Facts of a GPU. Constants are NVML's own (nvml.h).
#include "machine/gpu.h"

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

// NVML counts milliwatts.
int64_t watts(unsigned milliwatts) { return milliwatts == 0 ? doctor::kUnknown : milliwatts / 1000; }
int64_t known(unsigned number) { return number == 0 ? doctor::kUnknown : number; }

}  // namespace

int64_t gpus_on_bus(const std::string& devices) {
  int64_t count = 0;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(devices, none)) {
    std::string vendor, kind;
    std::ifstream(entry.path() / "vendor") >> vendor;
    std::ifstream(entry.path() / "class") >> kind;
    count += vendor == "0x10de" && kind.starts_with("0x0302");
  }
  return count;
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
  cudaDeviceProp properties{};
  if (!device.is_cuda() || cudaGetDeviceProperties(&properties, device.index()) != cudaSuccess) return facts;
  facts.name = properties.name;
  facts.uuid = uuid_text(properties.uuid);
  facts.pci = pci_bus_id(device);
  facts.numa = numa_of_pci(facts.pci);
  return facts;
}

std::string add_nvml(doctor::GpuFacts& facts, const std::string& library) {
  const auto nvml = Nvml::open(library);
  if (!nvml) {  // no driver, a broken one, or a container without it
    if (const int64_t found = gpus_on_bus(); found > 0) facts.in_node = found;
    return "";
  }
  facts.in_node = nvml->read<unsigned>("nvmlDeviceGetCount_v2", 0);
  char driver[96] = "";
  if (auto* version = nvml->find<int(char*, unsigned)>("nvmlSystemGetDriverVersion"))
    version(driver, sizeof driver);
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
