// RANKS 1
// Tests gauges with a library that imitates NVML, and without any such library.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "device/gauges.h"

namespace shardmark {
namespace {

constexpr auto kGpu = "0000:17:00.0";  // the only GPU that the library has

TEST(Gauges, EnergyIsReadInJoules) {
  const Gauges gauges(kGpu, FAKE_NVML);
  const double before = gauges.energy_j();
  EXPECT_DOUBLE_EQ(gauges.energy_j() - before, 2.5);  // each reading adds 2,500 mJ
}

TEST(Gauges, EnergyIsAbsentWhereItCannotBeRead) {
  EXPECT_TRUE(std::isnan(Gauges(at::Device(at::kCPU)).energy_j()));
  EXPECT_TRUE(std::isnan(Gauges(kGpu, "no-such-library.so").energy_j()));
  EXPECT_TRUE(std::isnan(Gauges("0000:99:00.0", FAKE_NVML).energy_j()));  // no such GPU
  EXPECT_TRUE(std::isnan(Gauges(kGpu, "libm.so.6").energy_j()));          // not NVML
}

TEST(Gauges, WhatTheDeviceTellsIsReadAndTheRestIsNaN) {
  const Reading reading = Gauges(kGpu, FAKE_NVML).read();
  EXPECT_EQ(reading.clock_mhz, 1230);
  EXPECT_EQ(reading.temperature_c, 71);
  EXPECT_TRUE(std::isnan(reading.power_w));  // this GPU does not support it
  EXPECT_EQ(reading.throttle, 0x40);
  EXPECT_TRUE(std::isnan(Gauges(kGpu, "no-such-library.so").read().clock_mhz));
}

TEST(Gauges, TheClockOfACoreIsReadWhereTheKernelTellsIt) {
  char name[] = "/tmp/shardmark_cores_XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  const std::filesystem::path folder = name;
  std::filesystem::create_directories(folder / "cpu3" / "cpufreq");
  std::ofstream(folder / "cpu3" / "cpufreq" / "scaling_cur_freq") << "2450000\n";
  EXPECT_EQ(core_clock_mhz(3, folder), 2450);
  EXPECT_TRUE(std::isnan(core_clock_mhz(4, folder)));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace shardmark
