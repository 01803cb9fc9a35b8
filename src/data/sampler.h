// Which samples a rank sees: every epoch is a shuffle by (seed, epoch) that all ranks agree on without talking.
#pragma once

#include <cstdint>
#include <vector>

namespace shardmark {

struct Draw {
  int64_t epoch;
  std::vector<int64_t> indices;
};

// Step s takes the next global batch (ranks x accumulation x batch) of the epoch's order. Inside it, rank r holds the
// contiguous part r, cut into `accumulation` micro-batches; so any number of ranks sees the same global batches. The last,
// partial global batch of an epoch is filled up with the first samples of the next epoch's order: none is lost, none doubled.
class DistributedSampler {
 public:
  DistributedSampler(int64_t num_samples, int64_t ranks, int64_t rank, int64_t batch_size, int64_t accumulation,
                     int64_t seed);
  Draw draw(int64_t step, int64_t micro_batch);

 private:
  const std::vector<int64_t>& order(int64_t epoch);
  int64_t num_samples_, ranks_, rank_, batch_size_, accumulation_, seed_;
  int64_t cached_epoch_ = -1;
  std::vector<int64_t> cached_;
};

}  // namespace shardmark
