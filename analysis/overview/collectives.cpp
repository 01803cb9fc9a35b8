// Bandwidth of the largest message and latency of the smallest, a row for each collective.
#include "specs/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "analysis/overview/overview.h"
#include "analysis/plots/names.h"
#include "analysis/table/cells.h"
#include "base/units.h"

namespace shardmark {
namespace {

// Of one operation on one setting, by bytes: the faster of in place and out of place.
using Sizes = std::map<int64_t, const MergedPoint*>;
using Key = std::tuple<size_t, std::string, std::string>;  // order and name of the operation, reduction

bool is_usable(const MergedPoint& merged) {
  return !is_training(merged) && std::isfinite(merged.measures.step_s) && merged.measures.step_s > 0;
}

std::string bytes_text(int64_t bytes) { return format_bytes(static_cast<double>(bytes)); }

// Those without warnings, where there are any.
Sizes believable(const Sizes& sizes) {
  Sizes kept = sizes;
  std::erase_if(kept, [](const auto& size) { return is_unreliable(*size.second); });
  return kept.empty() ? sizes : kept;
}

std::vector<Cell> row_of(const std::string& name, const Sizes& sizes) {
  const auto& [smallest, quick] = *sizes.begin();
  const auto& [largest, wide] = *sizes.rbegin();
  const auto marked = [](Cell cell, const MergedPoint& merged) {
    if (is_unreliable(merged)) cell.text += " ?";
    return cell;
  };
  int64_t num_wrong = 0;
  for (const auto& [bytes, merged] : sizes) num_wrong += merged->measures.num_wrong > 0 ? 1 : 0;
  return {cells::words(name),
          marked(cells::number(wide->measures.busbw_gb_s, 3), *wide),
          cells::words(bytes_text(largest)),
          marked(cells::number(quick->measures.step_s * 1e6, 3), *quick),
          cells::words(bytes_text(smallest)),
          cells::words(num_wrong == 0 ? "yes" : fmt::format("wrong at {} sizes", num_wrong))};
}

}  // namespace

OverviewTable collectives_overview(const std::vector<MergedPoint>& points) {
  OverviewTable table{
      "Collectives, by their largest and smallest message",
      "collectives",
      {{.name = "operation", .numeric = false},
       {.name = "busbw",
        .unit = "GB/s",
        .definition = "bus bandwidth of the largest message, as nccl-tests defines it; GB = 10^9 bytes. ?: "
                      "unreliable, see below."},
       {.name = "message"},
       {.name = "time",
        .unit = "us",
        .definition = "of the smallest message: median over the operations of the slowest rank's time."},
       {.name = "message"},
       {.name = "verified", .definition = "whether every element had the expected value."}},
      {}};
  // Most ranks first; by place and type.
  std::map<std::tuple<int64_t, Location, std::string>, std::map<Key, Sizes>> settings;
  for (const MergedPoint& merged : points) {
    if (!is_usable(merged)) continue;
    const CollectivePoint& c = merged.point.collective;
    const auto* const known = specs::find_collective(c.operation);
    const size_t order = known == nullptr ? specs::kNumCollectives : static_cast<size_t>(known->what);
    const bool is_plain = c.reduction == "sum" || c.reduction == "none";
    const MergedPoint*& best = settings[{-merged.point.ranks, location_of(merged), c.dtype}]
                                       [{order, c.operation, is_plain ? "" : c.reduction}][c.bytes];
    if (best == nullptr || merged.measures.step_s < best->measures.step_s) best = &merged;
  }
  for (const auto& [setting, operations] : settings) {
    OverviewGroup group{collective_setting_text(*operations.begin()->second.begin()->second), {}};
    for (const auto& [key, sizes] : operations) {
      const auto& [order, operation, reduction] = key;
      group.rows.push_back(row_of(operation + (reduction.empty() ? "" : " " + reduction), believable(sizes)));
    }
    table.groups.push_back(std::move(group));
  }
  return table;
}

}  // namespace shardmark
