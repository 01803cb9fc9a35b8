// RANKS 1
// Energy through a library that answers like NVML, and what happens where there is none.
#include <gtest/gtest.h>

#include <cmath>

#include "device/energy.h"

namespace shardmark {
namespace {

constexpr auto kGpu = "0000:17:00.0";  // the one that the library has

TEST(Energy, IsReadInJoules) {
  const EnergyMeter meter(kGpu, FAKE_NVML);
  const double before = meter.read_j();
  EXPECT_DOUBLE_EQ(meter.read_j() - before, 2.5);  // each reading counts 2,500 mJ
}

TEST(Energy, IsAbsentWhereItCannotBeRead) {
  EXPECT_TRUE(std::isnan(EnergyMeter(at::Device(at::kCPU)).read_j()));
  EXPECT_TRUE(std::isnan(EnergyMeter(kGpu, "no-such-library.so").read_j()));
  EXPECT_TRUE(std::isnan(EnergyMeter("0000:99:00.0", FAKE_NVML).read_j()));  // no such GPU
  EXPECT_TRUE(std::isnan(EnergyMeter(kGpu, "libm.so.6").read_j()));          // a library of something else
}

}  // namespace
}  // namespace shardmark
