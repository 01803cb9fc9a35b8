// Who is to blame for messages that arrive damaged: what a faulty rank sends arrives damaged everywhere, and
// what arrives at a faulty rank is damaged wherever it comes from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardmark {

// Elements that `receiver` got from `sender` with another value than was sent.
struct Damage {
  int64_t sender = 0, receiver = 0;
  int64_t elements = 0;
};

struct Blamed {
  int64_t rank = 0;
  int64_t partner = -1;  // of a single damaged pair, the other rank: either may be faulty; else -1
  std::string words;     // "6 elements of what rank 1 sent to 3 ranks arrived with another value"
  bool is_certain() const { return partner < 0; }
};

// Ranks that explain all damage: always the one with the most damaged partners of what is not explained yet.
// A pair of which neither rank has damaged messages with anybody else is blamed on both.
std::vector<Blamed> blamed_for(std::vector<Damage> damage);

}  // namespace shardmark
