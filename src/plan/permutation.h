// A pseudo-random permutation of [0, size), evaluated one element at a time: a shuffle that needs no memory.
#pragma once

#include <cstdint>

namespace shardmark {

// Note [Shuffling without a list]
// A set of 1e9 token windows would need 8 GB for a stored order, on every rank. Instead a Feistel network on
// a grid of rows x columns >= size cells permutes the cells: each round shifts one coordinate by a hash of
// the other, which can be undone, so it is a permutation whatever the hash. Cells at or above size are left
// by cycle walking: apply the network again until the result is below size. Since rows x columns exceeds
// size by less than sqrt(size) + 1, that is rare. Source: Black, Rogaway, Ciphers with arbitrary finite
// domains, CT-RSA 2002.
class Permutation {
 public:
  Permutation(int64_t size, uint64_t key);  // size >= 1
  int64_t operator()(int64_t position) const;

 private:
  static constexpr int kRounds = 8;  // fewer leave traces in very small sets
  int64_t size_, rows_, columns_;
  uint64_t keys_[kRounds];
};

}  // namespace shardmark
