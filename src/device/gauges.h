// What a device reports while it works: energy, clock, temperature, power, and why it is throttled.
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>

namespace shardmark {

// A NaN: not known.
struct Reading {
  double clock_mhz = std::nan("");  // of a GPU's multiprocessors, of the core that a CPU rank is on
  double temperature_c = std::nan("");
  double power_w = std::nan("");
  double throttle = std::nan("");  // bits: why the clock is held down, as in schema/fields.h
};

// Reads NVML, which is opened when asked for: a machine without it just has no energy. Of a CPU only the
// core's clock can be read, where the kernel has cpufreq (virtual machines have none).
class Gauges {
 public:
  explicit Gauges(at::Device device);
  Gauges(const std::string& pci_bus_id, const std::string& library);

  // Joules since the driver was loaded; NaN where nobody counts. The counter exists from Volta on and
  // advances in steps of some 20-100 ms. Source: nvmlDeviceGetTotalEnergyConsumption.
  double energy_j() const;
  Reading read() const;  // takes some 0.1 ms

 private:
  struct Gpu;
  std::shared_ptr<const Gpu> gpu_;  // nullptr: cannot be read
  bool is_cpu_ = false;
};

// Of a core, from the folder that the kernel keeps of all of them; NaN where it tells none.
double core_clock_mhz(int core, const std::string& folder = "/sys/devices/system/cpu");

}  // namespace shardmark
