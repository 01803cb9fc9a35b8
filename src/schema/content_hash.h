// FNV-1a with 64 bits. Points are named by the hash of their content, and journal lines and samples are
// checked by it. It is not cryptographic. Source: Fowler, Noll and Vo; constants of the 64-bit variant.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shardmark {

inline constexpr uint64_t kHashStart = 0xcbf29ce484222325;

// To hash data in several pieces, pass the result of one piece as `hash` of the next.
constexpr uint64_t hash_bytes(std::string_view bytes, uint64_t hash = kHashStart) {
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return hash;
}

// Returns 16 lower-case hexadecimal digits.
inline std::string hash_text(uint64_t hash) {
  std::string digits(16, '0');
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit, hash >>= 4)
    *digit = "0123456789abcdef"[hash & 15];
  return digits;
}

}  // namespace shardmark
