// Energy that a GPU uses, by its own counter.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>

namespace shardmark {

// Reads NVML, which is opened when asked for: a machine without it just has no energy. The counter exists
// from Volta on and advances in steps of some 20-100 ms. Source: nvmlDeviceGetTotalEnergyConsumption.
class EnergyMeter {
 public:
  explicit EnergyMeter(at::Device device);
  EnergyMeter(const std::string& pci_bus_id, const std::string& library);

  double read_j() const;  // joules since the driver was loaded; NaN where nobody counts

 private:
  struct Nvml;
  std::shared_ptr<const Nvml> nvml_;  // nullptr: cannot be read
};

}  // namespace shardmark
