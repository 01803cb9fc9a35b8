// Random numbers without state. A number is a hash of what it is for (seed, epoch, index ...), so it can be
// computed in any order, by any rank, and is the same on every machine.
#pragma once

#include <cstdint>

namespace shardmark {

// The output function of SplitMix64 (Steele, Lea, Flood 2014): every input bit flips every output bit with a
// chance of one half.
constexpr uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

template <class... Keys>
constexpr uint64_t hash_of(Keys... keys) {
  uint64_t h = 0;
  ((h = mix(h ^ static_cast<uint64_t>(keys))), ...);
  return h;
}

// Scales a hash to [0, n) without a division (Lemire 2019). The bias is below n / 2^64.
constexpr int64_t below(uint64_t hash, int64_t n) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<int64_t>((static_cast<Wide>(hash) * static_cast<uint64_t>(n)) >> 64);
}

}  // namespace shardmark
