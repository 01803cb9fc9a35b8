// Numbers with units are formatted as people write them.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/units.h"

namespace shardmark {
namespace {

TEST(Units, FormatsBytes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.00 KiB");
  EXPECT_EQ(format_bytes(21.34 * (1 << 20)), "21.3 MiB");
  EXPECT_EQ(format_bytes(999.7 * (1 << 20)), "1000 MiB");
  EXPECT_EQ(format_bytes(3.0 * (int64_t{1} << 40)), "3.00 TiB");
}

TEST(Units, FormatsSeconds) {
  EXPECT_EQ(format_seconds(0), "0 s");
  EXPECT_EQ(format_seconds(0.01234), "12.3 ms");
  EXPECT_EQ(format_seconds(1.5e-6), "1.50 us");
  EXPECT_EQ(format_seconds(99.96), "100 s");
  EXPECT_EQ(format_seconds(150), "2.5 min");
  EXPECT_EQ(format_seconds(2e-15), "0.00 ps");
}

TEST(Units, FormatsCounts) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(124439808), "124,439,808");
  EXPECT_EQ(format_count(-1234567), "-1,234,567");
  EXPECT_EQ(format_count(-100), "-100");
  EXPECT_EQ(format_count(0.5), "0.5");
}

TEST(Units, FormatsNumbers) {
  EXPECT_EQ(format_number(0.012345, 3), "0.0123");
  EXPECT_EQ(format_number(1234, 3), "1,234");
  EXPECT_EQ(format_number(12.345, 3), "12.3");
  EXPECT_EQ(format_number(-0.5, 2), "-0.50");
  EXPECT_EQ(format_number(0, 3), "0");
  EXPECT_EQ(format_number(1.5e-9, 2), "1.5e-09");
  EXPECT_EQ(format_number(std::nan(""), 3), "-");
  EXPECT_EQ(format_number(std::numeric_limits<double>::infinity(), 3), "-");
}

// Rounding up must not add a digit: 9.996 becomes 10.0 instead of 10.00.
TEST(Units, KeepsSignificantDigitsWhenRoundingUp) {
  EXPECT_EQ(format_number(9.996, 3), "10.0");
  EXPECT_EQ(format_number(0.9996, 3), "1.00");
  EXPECT_EQ(format_number(99.96, 3), "100");
  EXPECT_EQ(format_seconds(0.9999), "1.00 s");
  EXPECT_EQ(format_bytes(1023.99 * 1024), "1.00 MiB");
}

}  // namespace
}  // namespace shardmark
