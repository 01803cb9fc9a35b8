// Doubling until a batch fails, then bisection between the largest that fits and the smallest that does not.
#include "sweep/search.h"

#include <algorithm>

namespace shardmark {

int64_t LargestBatch::next() const {
  if (fails_ == 0) {
    if (fits_ >= kMost) return 0;
    return std::max<int64_t>(1, 2 * fits_);
  }
  if (fails_ - fits_ <= std::max<int64_t>(1, fits_ / kResolution)) return 0;
  return fits_ + (fails_ - fits_) / 2;
}

void LargestBatch::report(int64_t batch, bool fits) {
  if (fits)
    fits_ = std::max(fits_, batch);
  else
    fails_ = fails_ == 0 ? batch : std::min(fails_, batch);
}

}  // namespace shardmark
