// The unit in which a plot says how much memory: MiB, or GiB where values are large.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "analysis/frame/merged.h"

namespace shardmark {

struct MemoryUnit {
  const char* name;
  double bytes;
};

// For the largest peak of the points.
inline MemoryUnit memory_unit(const std::vector<const MergedPoint*>& points) {
  constexpr double kMebi = 0x1p20, kGibi = 0x1p30;
  double largest = 0;
  for (const MergedPoint* merged : points)
    if (std::isfinite(merged->measures.peak_bytes)) largest = std::max(largest, merged->measures.peak_bytes);
  return largest >= 4 * kGibi ? MemoryUnit{"GiB", kGibi} : MemoryUnit{"MiB", kMebi};
}

}  // namespace shardmark
