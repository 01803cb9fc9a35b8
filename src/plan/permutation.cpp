// The Feistel network behind a shuffle.
#include "plan/permutation.h"

#include <cmath>

#include "base/error.h"
#include "base/hash.h"

namespace shardmark {

Permutation::Permutation(int64_t size, uint64_t key) : size_(size) {
  ENSURE(size >= 1, "a permutation of nothing");
  rows_ = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(size))));
  columns_ = (size + rows_ - 1) / rows_;
  for (int round = 0; round < kRounds; ++round) keys_[round] = hash_of(key, round);
}

// See Note [Shuffling without a list].
int64_t Permutation::operator()(int64_t position) const {
  const auto shift = [](int64_t value, uint64_t hash, int64_t n) {
    value += below(hash, n);
    return value < n ? value : value - n;
  };
  do {
    int64_t row = position / columns_, column = position % columns_;
    for (int round = 0; round < kRounds; round += 2) {
      row = shift(row, mix(keys_[round] ^ static_cast<uint64_t>(column)), rows_);
      column = shift(column, mix(keys_[round + 1] ^ static_cast<uint64_t>(row)), columns_);
    }
    position = row * columns_ + column;
  } while (position >= size_);
  return position;
}

}  // namespace shardmark
