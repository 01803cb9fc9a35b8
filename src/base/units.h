// Numbers with units, for people: bytes (MiB = 2^20), seconds, counts; GB/s is 1e9 bytes per second.
#pragma once

#include <cstdint>
#include <string>

namespace shardmark {

// "8", "4KiB", "128MiB", "128M" (as nccl-tests: 2^20), "1GiB", "25MB" (1e6). Throws UsageError with what is
// accepted.
int64_t parse_bytes(const std::string& text);
// "5us", "120ms", "1.5s". Throws UsageError with what is accepted.
double parse_seconds(const std::string& text);

std::string format_bytes(double bytes);      // "21.3 MiB"
std::string format_seconds(double seconds);  // "12.3 ms"
std::string format_count(double count);      // "124,439,808" for whole numbers below 1e15
std::string format_number(double value, int significant_digits);  // "0.0123", "1,234"

}  // namespace shardmark
