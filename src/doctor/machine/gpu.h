// A GPU, as CUDA and NVML describe it.
#pragma once

#include <ATen/ATen.h>

#include <string>

#include "doctor/facts.h"

namespace shardmark::machine {

// NVIDIA's on the PCI bus, whether a driver shows them or not.
struct GpusOnBus {
  int64_t computing = 0;  // data-center cards, which have no screen
  int64_t screens = 0;    // may have one: for computing, or not
};
GpusOnBus gpus_on_bus(const std::string& devices = "/sys/bus/pci/devices");

// NUMA node that a PCI device hangs on; -1: none, or nobody knows.
int numa_of_pci(const std::string& pci_bus_id);

// On a CPU only how many GPUs there are, for this process and on the node.
doctor::GpuFacts gpu_facts(at::Device device);
// What only NVML knows of the GPU whose bus id stands there; stays unknown where it does not answer. Returns
// the driver's version.
std::string add_nvml(doctor::GpuFacts& facts, const std::string& library);

}  // namespace shardmark::machine
