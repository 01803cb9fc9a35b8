// Which samples a rank sees. Every epoch is a shuffle by (seed, epoch), which all ranks compute alike without
// communication.
#pragma once

#include <cstdint>
#include <vector>

#include "schema/point.h"

namespace shardmark {

// Note [Shuffling without a list]
// A pseudo-random permutation of [0, size), evaluated one element at a time, so that it needs no memory.
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

// A sample as it is seen in one epoch. Augmentation is a function of index and epoch (and of the seed).
struct Draw {
  int64_t index;
  int64_t epoch = 0;
  bool operator==(const Draw&) const = default;
};

// The orders of epochs 0, 1, 2 ... laid end to end make one endless sequence. Step s takes its next global
// batch (ranks x accumulation x batch) from it. Within that, rank r holds the contiguous r-th part, divided
// into `accumulation` micro-batches. So no sample is lost or seen twice. A global batch that reaches past the
// end of an epoch goes on with the start of the next, even if the set is smaller than one global batch. The
// global batch is the same however it is divided among ranks. All this is a pure function of the arguments:
// there is no state and no stored order, and the cost does not depend on the number of samples.
class DistributedSampler {
 public:
  DistributedSampler(int64_t num_samples, int64_t ranks, int64_t rank, int64_t batch_size,
                     int64_t accumulation, int64_t seed);
  // For a training configuration. data_rank is the index of the model replica.
  DistributedSampler(const Point& point, int64_t num_samples, int64_t data_rank);
  // Returns the batch_size samples of this rank's micro-batch.
  std::vector<Draw> draw(int64_t step, int64_t micro_batch) const;
  int64_t accumulation() const { return accumulation_; }

 private:
  int64_t num_samples_, ranks_, rank_, batch_size_, accumulation_, seed_;
};

}  // namespace shardmark
