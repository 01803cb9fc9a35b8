// Describes a GPU from what CUDA and NVML report.
#pragma once

#include <ATen/ATen.h>

#include <string>

#include "doctor/facts.h"

namespace shardmark::machine {

// NVIDIA devices on the PCI bus, whether or not a driver shows them.
struct GpusOnBus {
  int64_t computing = 0;  // data-center cards without a screen
  int64_t screens = 0;    // cards that may have one, which may also compute
};
GpusOnBus gpus_on_bus(const std::string& devices = "/sys/bus/pci/devices");

// The NUMA node to which a PCI device is attached; -1 if there is none or it is unknown.
int numa_of_pci(const std::string& pci_bus_id);

// On a CPU, only the numbers of GPUs of this process and of the node.
doctor::GpuFacts gpu_facts(at::Device device);
// Adds what only NVML knows about the GPU with the bus id in `facts`. What NVML cannot read stays unknown.
// Returns the driver's version.
std::string add_nvml(doctor::GpuFacts& facts, const std::string& library);

}  // namespace shardmark::machine
