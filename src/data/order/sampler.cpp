// The distributed sampler: a global position in the endless sequence of epochs, and the permutation of the
// epoch at that position.
#include "data/order/sampler.h"

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

// Implements Note [Shuffling without a list].
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

DistributedSampler::DistributedSampler(int64_t num_samples, int64_t ranks, int64_t rank, int64_t batch_size,
                                       int64_t accumulation, int64_t seed)
    : num_samples_(num_samples),
      ranks_(ranks),
      rank_(rank),
      batch_size_(batch_size),
      accumulation_(accumulation),
      seed_(seed) {
  ENSURE(num_samples >= 1, "a sampler needs samples");
  ENSURE(ranks >= 1 && rank >= 0 && rank < ranks, "no such rank");
  ENSURE(batch_size >= 1 && accumulation >= 1, "an empty batch");
}

DistributedSampler::DistributedSampler(const Point& point, int64_t num_samples, int64_t data_rank)
    : DistributedSampler(num_samples, point.data_ranks(), data_rank, point.training.batch_size,
                         point.training.accumulation, point.seed) {}

std::vector<Draw> DistributedSampler::draw(int64_t step, int64_t micro_batch) const {
  ENSURE(step >= 0 && micro_batch >= 0 && micro_batch < accumulation_, "no such micro-batch");
  const int64_t first = ((step * ranks_ + rank_) * accumulation_ + micro_batch) * batch_size_;
  int64_t epoch = first / num_samples_, position = first % num_samples_;
  const auto order = [&] { return Permutation(num_samples_, hash_of(seed_, epoch)); };
  std::vector<Draw> draws;
  draws.reserve(static_cast<size_t>(batch_size_));
  for (Permutation shuffle = order(); std::ssize(draws) < batch_size_; ++position) {
    if (position == num_samples_) {
      position = 0;
      ++epoch;
      shuffle = order();
    }
    draws.push_back({shuffle(position), epoch});
  }
  return draws;
}

}  // namespace shardmark
