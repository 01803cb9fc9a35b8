// Prints numbers with units for people; base/value.h parses them. Bytes use powers of 1024 (MiB = 2^20); GB/s
// is 1e9 bytes per second.
#pragma once

#include <cstdint>
#include <string>

namespace shardmark {

std::string format_bytes(double bytes);      // "21.3 MiB"
std::string format_seconds(double seconds);  // "12.3 ms"
std::string format_clock(double seconds);    // "0:41", "1:02:03"
std::string format_count(double count);      // "124,439,808" for whole numbers below 1e15
std::string format_number(double value, int significant_digits);  // "0.0123", "1,234"

}  // namespace shardmark
