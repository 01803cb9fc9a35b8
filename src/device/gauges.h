// What a device reports while it works: energy, clock, temperature, power, and why it is throttled.
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>

namespace shardmark {

// NaN means unknown.
struct Reading {
  // The clock of a GPU's multiprocessors, or of the core that a CPU rank runs on.
  double clock_mhz = std::nan("");
  double temperature_c = std::nan("");
  double power_w = std::nan("");
  // Bits of the reasons for which the clock is held down, as in schema/fields.h.
  double throttle = std::nan("");
};

// Reads NVML, which is opened at run time; a machine without it has no energy readings. For a CPU only the
// clock of the core can be read, and only if the kernel has cpufreq (virtual machines do not).
class Gauges {
 public:
  explicit Gauges(at::Device device);
  Gauges(const std::string& pci_bus_id, const std::string& library);

  // Joules since the driver was loaded; NaN if there is no counter. GPUs have one from Volta on; it advances
  // in steps of some 20-100 ms. Source: nvmlDeviceGetTotalEnergyConsumption.
  double energy_j() const;
  Reading read() const;  // takes about 0.1 ms

 private:
  struct Gpu;
  std::shared_ptr<const Gpu> gpu_;  // nullptr: no GPU can be read
  bool is_cpu_ = false;
};

// The clock of a core, from the kernel's folder of all cores; NaN if the kernel does not tell it.
double core_clock_mhz(int core, const std::string& folder = "/sys/devices/system/cpu");

}  // namespace shardmark
