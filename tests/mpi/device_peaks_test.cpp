// Tests the peak FLOP/s of data sheets, by the device names that CUDA reports.
// RANKS 1
#include <gtest/gtest.h>

#include <cmath>

#include "device/device.h"

namespace shardmark {
namespace {

constexpr const char* kDevices[] = {"NVIDIA A100-SXM4-40GB",
                                    "NVIDIA A100-SXM4-80GB",
                                    "NVIDIA A100-PCIE-40GB",
                                    "NVIDIA A100 80GB PCIe",
                                    "NVIDIA H100 80GB HBM3",
                                    "NVIDIA H100 NVL",
                                    "NVIDIA H100 PCIe",
                                    "NVIDIA H200",
                                    "NVIDIA B200",
                                    "NVIDIA GB200",
                                    "NVIDIA RTX 6000 Ada Generation",
                                    "NVIDIA L40S"};

// The tensor cores of all these generations multiply 16-bit numbers twice as fast as TF32, apart from the
// rounding in data sheets. A number with sparsity among dense ones would be off by a factor of 2.
TEST(DatasheetPeaks, AreDenseInEveryPrecision) {
  for (const std::string device : kDevices) {
    SCOPED_TRACE(device);
    const double half = datasheet_peak_flops(device, "bf16");
    EXPECT_EQ(datasheet_peak_flops(device, "fp16"), half);
    EXPECT_NEAR(half / datasheet_peak_flops(device, "tf32"), 2, 0.05);
    EXPECT_GT(datasheet_peak_flops(device, "tf32"), datasheet_peak_flops(device, "fp32"));
    // Ada, Hopper and Blackwell multiply 8-bit numbers twice as fast again.
    if (device.find("A100") == std::string::npos) {
      EXPECT_NEAR(datasheet_peak_flops(device, "fp8") / half, 2, 0.03);
    }
  }
}

TEST(DatasheetPeaks, AreThoseOfTheDataSheets) {
  EXPECT_EQ(datasheet_peak_flops("NVIDIA B200", "bf16"), 2250e12);
  EXPECT_EQ(datasheet_peak_flops("NVIDIA GB200", "bf16"), 2500e12);
  EXPECT_EQ(datasheet_peak_flops("NVIDIA GB300", "fp8"), 5000e12);
  EXPECT_EQ(datasheet_peak_flops("NVIDIA H100 PCIe", "fp16"), 756.5e12);
  EXPECT_EQ(datasheet_peak_flops("NVIDIA H100 NVL", "fp64"), 60e12);
  EXPECT_EQ(datasheet_peak_flops("NVIDIA A100 80GB PCIe", "tf32"), 156e12);
  EXPECT_EQ(datasheet_peak_flops("NVIDIA L40S", "bf16"), 362.05e12);
  EXPECT_EQ(datasheet_peak_flops("NVIDIA H200", "fp8"), 1979e12);
  EXPECT_TRUE(std::isnan(datasheet_peak_flops("NVIDIA A100-SXM4-80GB", "fp8"))) << "it has no such products";
  EXPECT_EQ(datasheet_peak_flops("NVIDIA B200", "mxfp8"), 4500e12);
  EXPECT_TRUE(std::isnan(datasheet_peak_flops("NVIDIA H200", "mxfp8"))) << "it has no scales of blocks";
  EXPECT_EQ(datasheet_peak_flops("NVIDIA RTX 6000 Ada Generation", "fp32"), 91.1e12);
}

TEST(DatasheetPeaks, AreNoNumberWhereNobodySaysOne) {
  EXPECT_TRUE(std::isnan(datasheet_peak_flops("NVIDIA L40S", "fp64")));
  EXPECT_TRUE(std::isnan(datasheet_peak_flops("NVIDIA H100", "bf16"))) << "a name that CUDA gives no device";
}

}  // namespace
}  // namespace shardmark
