// FNV-1a, 64 bits: names points by their content and checks journal lines and samples. Not cryptographic.
// Source: Fowler, Noll, Vo; constants of the 64-bit variant.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shardmark {

inline constexpr uint64_t kHashStart = 0xcbf29ce484222325;

// Pass an earlier result as `hash` to go on with it.
constexpr uint64_t hash_bytes(std::string_view bytes, uint64_t hash = kHashStart) {
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return hash;
}

// 16 lower-case hexadecimal digits.
inline std::string hash_text(uint64_t hash) {
  std::string digits(16, '0');
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit, hash >>= 4)
    *digit = "0123456789abcdef"[hash & 15];
  return digits;
}

}  // namespace shardmark
