// Reads NVML, and the kernel's cpufreq files.
#include "device/gauges.h"

#include <sched.h>

#include <fstream>

#include "device/nvml.h"

namespace shardmark {
namespace {

constexpr int kSmClock = 1, kGpuSensor = 0;  // NVML_CLOCK_SM, NVML_TEMPERATURE_GPU

}  // namespace

struct Gauges::Gpu {
  std::shared_ptr<const Nvml> nvml;
  void* device;

  static std::shared_ptr<const Gpu> open(const std::string& bus_id, const std::string& library) {
    auto nvml = bus_id.empty() ? nullptr : Nvml::open(library);
    void* const device = nvml ? nvml->device(bus_id) : nullptr;
    return device == nullptr ? nullptr : std::make_shared<Gpu>(Gpu{std::move(nvml), device});
  }

  // Returns NaN if the driver lacks the function or the device does not support it.
  template <class Value, class... Arguments>
  double ask(const char* name, Arguments... arguments) const {
    const auto value = nvml->ask<Value>(name, device, arguments...);
    return value ? static_cast<double>(*value) : std::nan("");
  }
};

Gauges::Gauges(at::Device device) : Gauges(pci_bus_id(device), Nvml::kLibrary) { is_cpu_ = device.is_cpu(); }

Gauges::Gauges(const std::string& pci_bus_id, const std::string& library)
    : gpu_(Gpu::open(pci_bus_id, library)) {}

double Gauges::energy_j() const {
  if (!gpu_) return std::nan("");
  return gpu_->ask<unsigned long long>("nvmlDeviceGetTotalEnergyConsumption") / 1000;
}

Reading Gauges::read() const {
  Reading reading;
  if (is_cpu_) reading.clock_mhz = core_clock_mhz(sched_getcpu());
  if (!gpu_) return reading;
  reading.clock_mhz = gpu_->ask<unsigned>("nvmlDeviceGetClockInfo", kSmClock);
  reading.temperature_c = gpu_->ask<unsigned>("nvmlDeviceGetTemperature", kGpuSensor);
  reading.power_w = gpu_->ask<unsigned>("nvmlDeviceGetPowerUsage") / 1000;
  reading.throttle = gpu_->ask<unsigned long long>("nvmlDeviceGetCurrentClocksThrottleReasons");
  return reading;
}

double core_clock_mhz(int core, const std::string& folder) {
  double khz = 0;
  std::ifstream file(folder + "/cpu" + std::to_string(core) + "/cpufreq/scaling_cur_freq");
  return file >> khz ? khz / 1000 : std::nan("");
}

}  // namespace shardmark
