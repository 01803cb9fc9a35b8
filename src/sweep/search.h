// The largest batch that fits into memory, by doubling and then bisection. Pure: it takes the outcome of a
// batch and gives the one to try next, so that an interrupted run goes on from the stored outcomes.
#pragma once

#include <cstdint>

namespace shardmark {

class LargestBatch {
 public:
  // The next batch to try; 0 when the answer is known: exactly up to 32, to 3 % above.
  int64_t next() const;
  void report(int64_t batch, bool fits);

  int64_t fits() const { return fits_; }    // the largest known to fit; 0: none
  int64_t fails() const { return fails_; }  // the smallest known not to; 0: none

 private:
  static constexpr int64_t kResolution = 32;
  static constexpr int64_t kMost = 1 << 20;
  int64_t fits_ = 0;
  int64_t fails_ = 0;
};

}  // namespace shardmark
