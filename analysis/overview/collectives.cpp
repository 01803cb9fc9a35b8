// Bandwidth of the largest message and latency of the smallest, a row for each collective.
#include "specs/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include "analysis/frame/names.h"
#include "analysis/overview/overview.h"
#include "analysis/table/cells.h"
#include "base/error.h"
#include "base/units.h"

namespace shardmark {
namespace {

// The points of one operation in one setting, by message size in bytes.
using Sizes = std::map<int64_t, const MergedPoint*>;
struct Measured {
  std::array<Sizes, 2> by_place;  // out of place, in place
  // The smallest and the largest size that have a time, both in place where both were measured so, because
  // training works in place; else both out of place; else each as it was measured.
  std::pair<const MergedPoint*, const MergedPoint*> ends() const {
    Sizes both = by_place[1];
    both.insert(by_place[0].begin(), by_place[0].end());
    const int64_t smallest = both.begin()->first, largest = both.rbegin()->first;
    for (const Sizes& sizes : {std::cref(by_place[1]), std::cref(by_place[0]), std::cref(both)})
      if (sizes.contains(smallest) && sizes.contains(largest)) return {sizes.at(smallest), sizes.at(largest)};
    throw ContractError("no size is the smallest of all");
  }
  bool has_times() const { return !by_place[0].empty() || !by_place[1].empty(); }
  std::set<int64_t> all, wrong, unchecked;  // sizes, whatever their outcome and place
};
using Key = std::pair<size_t, std::string>;  // order and text of the operation
using Setting =
    std::tuple<int64_t, Location, std::string, std::string>;  // most ranks first; type, series_key()
using MeasuredCollectives = std::map<Setting, std::map<Key, Measured>>;

bool is_usable(const MergedPoint& merged) {
  return is_collective(merged) && std::isfinite(merged.measures.step_s) && merged.measures.step_s > 0;
}

std::string bytes_text(int64_t bytes) { return format_bytes(static_cast<double>(bytes)); }

// "yes" if every element of every size was compared and right; else how many sizes were wrong or not
// checked.
std::string verified_text(const Measured& measured) {
  std::string text;
  for (const auto& [word, sizes] :
       {std::pair("wrong", &measured.wrong), {"not checked", &measured.unchecked}})
    if (!sizes->empty()) text += fmt::format("{}{} at {}", text.empty() ? "" : ", ", word, sizes->size());
  return text.empty()
             ? "yes"
             : text + fmt::format(" of {} size{}", measured.all.size(), measured.all.size() == 1 ? "" : "s");
}

std::vector<Cell> row_of(const std::string& name, const Measured& measured) {
  const auto& [smallest, largest] = measured.ends();
  const auto marked = [](Cell cell, const MergedPoint& merged) {
    if (is_unreliable(merged) && !cell.says_nothing()) cell.text += kMark;
    return cell;
  };
  return {cells::words(name),
          marked(cells::number(largest->measures.busbw_gb_s, 3), *largest),
          cells::words(bytes_text(largest->point.collective.bytes)),
          marked(cells::number(smallest->measures.step_s * 1e6, 3), *smallest),
          cells::words(bytes_text(smallest->point.collective.bytes)),
          cells::words(verified_text(measured))};
}

bool has_doubtful(const OverviewTable& table) {
  for (const OverviewGroup& group : table.groups)
    for (const auto& row : group.rows)
      for (const Cell& cell : row)
        if (cell.text.ends_with(kMark)) return true;
  return false;
}

Measured& measured_of(const MergedPoint& merged, MeasuredCollectives& settings) {
  const CollectivePoint& c = merged.point.collective;
  const auto* const known = specs::find_operation(c.operation);
  const size_t order =
      known == nullptr ? specs::operations().size() : static_cast<size_t>(known - specs::operations().data());
  return settings[{-merged.point.ranks, location_of(merged), c.dtype,
                   series_key(merged, {"operation", "reduction", "parts", "bytes", "in_place"})}]
                 [{order, operation_text(c)}];
}

// Wrong points gave no result, and so are none of the merged ones.
void add_wrong(const std::vector<StudyData>& studies, MeasuredCollectives& settings) {
  for (const StudyData& study : studies)
    for (const Record& record : study.records) {
      if (record.point.workload != "collective" || record.outcome != Outcome::wrong) continue;
      Measured& measured = measured_of(as_merged(record, study.environment), settings);
      measured.all.insert(record.point.collective.bytes);
      measured.wrong.insert(record.point.collective.bytes);
    }
}

MeasuredCollectives settings_of(const std::vector<StudyData>& studies,
                                const std::vector<MergedPoint>& points) {
  MeasuredCollectives settings;
  for (const MergedPoint& merged : points) {
    if (!is_usable(merged)) continue;
    Measured& measured = measured_of(merged, settings);
    const int64_t bytes = merged.point.collective.bytes;
    measured.all.insert(bytes);
    if (merged.measures.num_wrong > 0) measured.wrong.insert(bytes);
    if (merged.measures.num_wrong < 0) measured.unchecked.insert(bytes);
    measured.by_place[merged.point.collective.in_place ? 1 : 0][bytes] = &merged;
  }
  add_wrong(studies, settings);
  // An operation that was wrong at every size has no time to show; the warnings name it.
  for (auto& [setting, operations] : settings)
    std::erase_if(operations, [](const auto& operation) { return !operation.second.has_times(); });
  std::erase_if(settings, [](const auto& setting) { return setting.second.empty(); });
  return settings;
}

}  // namespace

OverviewTable collectives_overview(const std::vector<StudyData>& studies,
                                   const std::vector<MergedPoint>& points) {
  OverviewTable table{
      "Collectives, by their largest and smallest message",
      "collectives",
      {{.name = "operation", .numeric = false},
       {.name = "busbw",
        .unit = "GB/s",
        .definition =
            "bus bandwidth of the largest message, as nccl-tests defines it, or what the busiest rank "
            "exchanges with others; GB = 10^9 bytes. ?: "
            "the message's times have a warning, see below."},
       {.name = "message"},
       {.name = "time",
        .unit = "us",
        .definition = "of the smallest message: median over the operations of the slowest rank's time."},
       {.name = "message"},
       {.name = "verified", .definition = "whether every element of every size had the expected value."}},
      {},
      {}};
  std::vector<LabelParts> labels;  // of the groups
  for (const auto& [setting, operations] : settings_of(studies, points)) {
    const MergedPoint& first = *operations.begin()->second.ends().first;
    OverviewGroup group;
    labels.push_back(collective_setting_parts(first));
    for (const auto& [key, measured] : operations) {
      group.rows.push_back(row_of(key.second, measured));
    }
    table.groups.push_back(std::move(group));
  }
  name_groups(table, labels);
  if (has_doubtful(table))
    table.notes.emplace_back("?: the times of this message have a warning, see below and --table problems.");
  return table;
}

}  // namespace shardmark
