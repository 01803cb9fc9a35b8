// Opens NVML and finds devices in it.
#include "device/nvml.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

namespace shardmark {

std::string pci_bus_id(at::Device device) {
  char id[32] = "";
  if (device.is_cuda() && cudaDeviceGetPCIBusId(id, sizeof id, device.index()) != cudaSuccess) return "";
  return id;
}

std::shared_ptr<const Nvml> Nvml::open(const std::string& library) {
  void* opened = dlopen(library.c_str(), RTLD_NOW);
  if (opened == nullptr) return nullptr;
  auto* init = reinterpret_cast<int (*)()>(dlsym(opened, "nvmlInit_v2"));
  if (init == nullptr || init() != 0) {
    dlclose(opened);
    return nullptr;
  }
  return std::shared_ptr<const Nvml>(new Nvml(opened));
}

Nvml::~Nvml() {
  if (auto* shutdown = find<int()>("nvmlShutdown")) shutdown();
  dlclose(library_);
}

void* Nvml::address(const char* name) const { return dlsym(library_, name); }

void* Nvml::device(const std::string& pci_bus_id) const {
  return read<void*>("nvmlDeviceGetHandleByPciBusId_v2", nullptr, pci_bus_id.c_str());
}

}  // namespace shardmark
