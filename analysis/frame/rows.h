// Horizontal plots, with one row for each point of a family and batch: what they share.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "analysis/frame/groups.h"
#include "analysis/frame/names.h"

namespace shardmark {

struct RowGroup {
  std::string setting;  // "gpt2, batch 4 per rank"
  std::string batch;    // "batch 4 per rank"
  std::string about;    // the same, with the ranks where all points have as many
  PointList points;
  std::vector<std::string> rows;  // "fsdp, 2 ranks"
};

inline constexpr size_t kMostRows = 40;  // of a plot: more would not fit a page

// Training points for which `shown` holds, by family and batch, fewest ranks first; a setting of more than
// most_rows points is several groups. A point of a weak and of a strong sweep stands in both.
std::vector<RowGroup> row_groups(const std::vector<MergedPoint>& points, const PlotNames& names,
                                 const std::function<bool(const MergedPoint&)>& shown,
                                 size_t most_rows = kMostRows);

// What compares strategies with each other: points of a family and batch on the same ranks, each point once.
struct SettingPoints {
  std::string name;          // "gpt2, batch 4 per rank, 2 ranks"
  std::string batch, ranks;  // "batch 4 per rank", "2 ranks"
  PointList points;
};

// The points of each family and batch on the most ranks where one of them has no warnings. `single` alone
// counts only where nothing else was measured.
std::vector<SettingPoints> settings_on_most_ranks(const std::vector<MergedPoint>& points,
                                                  const PlotNames& names,
                                                  const std::function<bool(const MergedPoint&)>& shown);

}  // namespace shardmark
