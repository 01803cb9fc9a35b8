// Finds the largest batch that fits into memory, by doubling and then bisection. Memory grows with the batch,
// so all batches up to some size fit and no larger one does. The search is pure: it takes the outcomes of
// batches and returns the next one to try. An interrupted run therefore continues from the outcomes in the
// study.
#pragma once

#include <cstdint>

namespace shardmark {

class LargestBatch {
 public:
  // The next batch to try; 0 when the answer is known. It is exact up to 32, and within 3 % above.
  int64_t next() const;
  void report(int64_t batch, bool fits);

  int64_t fits() const { return fits_; }    // largest batch known to fit; 0: none
  int64_t fails() const { return fails_; }  // smallest batch known not to fit; 0: none

 private:
  static constexpr int64_t kResolution = 32;
  static constexpr int64_t kMost = 1 << 20;
  int64_t fits_ = 0;
  int64_t fails_ = 0;
};

}  // namespace shardmark
