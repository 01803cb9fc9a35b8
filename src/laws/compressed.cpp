// Counts of what travels.
#include "laws/compressed.h"

#include <algorithm>
#include <cmath>

namespace shardmark::laws {

int64_t num_selected(int64_t numel, double ratio) {
  const auto wanted = static_cast<int64_t>(std::ceil(ratio * static_cast<double>(numel)));
  return std::min(numel, wanted + wanted % 2);
}

}  // namespace shardmark::laws
