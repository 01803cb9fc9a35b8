// The four functions of NVML that are needed, without its header or a link to it.
#include "device/energy.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cmath>

namespace shardmark {
namespace {

using Close = decltype([](void* library) { dlclose(library); });
using Library = std::unique_ptr<void, Close>;

template <class Function>
Function* find(const Library& library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library.get(), name));
}

std::string pci_bus_id(at::Device device) {
  char id[32] = "";
  if (device.is_cuda() && cudaDeviceGetPCIBusId(id, sizeof id, device.index()) != cudaSuccess) return "";
  return id;
}

}  // namespace

// NVML's own types: a device is an opaque pointer, a result 0 for success.
struct EnergyMeter::Nvml {
  Library library;
  void* device = nullptr;
  int (*energy_mj)(void* device, unsigned long long* millijoules) = nullptr;
  int (*shutdown)() = nullptr;

  static std::shared_ptr<const Nvml> open(const std::string& bus_id, const std::string& name) {
    Library library(dlopen(name.c_str(), RTLD_NOW));
    if (!library) return nullptr;
    auto* init = find<int()>(library, "nvmlInit_v2");
    auto* by_bus_id = find<int(const char*, void**)>(library, "nvmlDeviceGetHandleByPciBusId_v2");
    auto* energy_mj = find<int(void*, unsigned long long*)>(library, "nvmlDeviceGetTotalEnergyConsumption");
    auto* shutdown = find<int()>(library, "nvmlShutdown");
    if (init == nullptr || by_bus_id == nullptr || energy_mj == nullptr || shutdown == nullptr || init() != 0)
      return nullptr;
    auto nvml = std::make_shared<Nvml>(std::move(library), nullptr, energy_mj, shutdown);
    unsigned long long millijoules = 0;
    if (by_bus_id(bus_id.c_str(), &nvml->device) != 0 || energy_mj(nvml->device, &millijoules) != 0)
      return nullptr;
    return nvml;
  }

  Nvml(Library opened, void* found, int (*energy)(void*, unsigned long long*), int (*end)())
      : library(std::move(opened)), device(found), energy_mj(energy), shutdown(end) {}
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml() { shutdown(); }
};

EnergyMeter::EnergyMeter(at::Device device) : EnergyMeter(pci_bus_id(device), "libnvidia-ml.so.1") {}

EnergyMeter::EnergyMeter(const std::string& pci_bus_id, const std::string& library)
    : nvml_(pci_bus_id.empty() ? nullptr : Nvml::open(pci_bus_id, library)) {}

double EnergyMeter::read_j() const {
  unsigned long long millijoules = 0;
  if (!nvml_ || nvml_->energy_mj(nvml_->device, &millijoules) != 0) return std::nan("");
  return static_cast<double>(millijoules) / 1000;
}

}  // namespace shardmark
