// A library with the NVML functions that device/gauges.cpp and doctor/machine/gpu.cpp need. Its GPU is hot,
// power-capped and has half of its PCIe lanes. Some functions are missing, as in old drivers.
#include <cstdlib>
#include <cstring>

extern "C" {

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }

int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** device) {
  static int gpu;
  *device = &gpu;
  return std::strcmp(bus_id, "0000:17:00.0") == 0 ? 0 : 6;  // NVML_ERROR_NOT_FOUND
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  static int gpus[8];
  *device = &gpus[index % 8];
  return index == 3 ? 15 : 0;  // NVML_ERROR_GPU_IS_LOST
}

int nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) {
  void* other = nullptr;
  nvmlDeviceGetHandleByIndex_v2(5, &other);
  *major = device == other ? 8 : 9;
  *minor = 0;
  return 0;
}

int nvmlDeviceGetName(void*, char* name, unsigned length) {
  std::strncpy(name, "NVIDIA A100-PCIE-40GB", length);
  return 0;
}

int nvmlDeviceGetTotalEnergyConsumption(void*, unsigned long long* millijoules) {
  static unsigned long long total = 1000000;
  *millijoules = total += 2500;
  return 0;
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 8;
  return 0;
}

int nvmlSystemGetDriverVersion(char* version, unsigned length) {
  const char* const other = std::getenv("FAKE_NVML_DRIVER");
  std::strncpy(version, other != nullptr ? other : "580.95.05", length);
  return 0;
}

int nvmlDeviceGetClockInfo(void*, int clock, unsigned* mhz) {
  *mhz = clock == 1 ? 1230 : 9999;  // NVML_CLOCK_SM
  return 0;
}

int nvmlDeviceGetMaxClockInfo(void*, int clock, unsigned* mhz) {
  *mhz = clock == 1 ? 1980 : 9999;
  return 0;
}

int nvmlDeviceGetPowerManagementLimit(void*, unsigned* milliwatts) {
  *milliwatts = 500000;
  return 0;
}

int nvmlDeviceGetPowerManagementDefaultLimit(void*, unsigned* milliwatts) {
  *milliwatts = 700000;
  return 0;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
  *reasons = 0x40;  // hardware thermal slowdown
  return 0;
}

int nvmlDeviceGetCurrPcieLinkWidth(void*, unsigned* lanes) {
  *lanes = 8;
  return 0;
}

int nvmlDeviceGetMaxPcieLinkWidth(void*, unsigned* lanes) {
  *lanes = 16;
  return 0;
}

int nvmlDeviceGetMigMode(void*, unsigned* current, unsigned* pending) {
  *current = *pending = 0;
  return 3;  // NVML_ERROR_NOT_SUPPORTED
}

int nvmlDeviceGetMemoryInfo(void*, unsigned long long* total_free_used) {
  total_free_used[0] = 80ull << 30;
  total_free_used[1] = 77ull << 30;
  total_free_used[2] = 3ull << 30;
  return 0;
}

int nvmlDeviceGetTemperature(void*, int sensor, unsigned* celsius) {
  *celsius = 71;
  return sensor == 0 ? 0 : 2;
}

int nvmlDeviceGetPowerUsage(void*, unsigned*) { return 3; }  // NVML_ERROR_NOT_SUPPORTED
}
