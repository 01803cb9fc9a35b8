// Horizontal plots, with one row for each point of a family and batch: what they share.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "analysis/plots/plots.h"

namespace shardmark {

struct RowGroup {
  std::string about;  // "gpt2, batch 4 per rank"
  std::vector<const MergedPoint*> points;
  std::vector<std::string> rows;  // "fsdp, 2 ranks"
};

// Training points for which `shown` holds, by family and batch, fewest ranks first, at most kMostRows in a
// group.
std::vector<RowGroup> row_groups(const std::vector<MergedPoint>& points, const PlotNames& names,
                                 const std::function<bool(const MergedPoint&)>& shown);

inline constexpr size_t kMostRows = 40;  // more would not fit a page

}  // namespace shardmark
