// Which strategy is fastest, and what it costs: on the most ranks of each setting.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include "analysis/frame/rows.h"
#include "analysis/frame/training_columns.h"
#include "analysis/overview/overview.h"
#include "analysis/stats/compare.h"
#include "analysis/stats/ranking.h"
#include "analysis/table/axis_columns.h"
#include "analysis/table/cells.h"

namespace shardmark {
namespace {

using PointList = std::vector<const MergedPoint*>;

// The ranks of `single` train independent copies: what it is measured for is to compare others with it.
bool is_rival(const MergedPoint& merged) {
  return !is_unreliable(merged) && (!is_replicas(merged) || merged.point.ranks == 1);
}

// Rivals first, the fastest of them first; then `single`, then unreliable ones.
PointList in_order(PointList points) {
  std::stable_sort(points.begin(), points.end(), [](auto* a, auto* b) {
    const auto order = [](const MergedPoint& one) {
      return std::tuple(is_unreliable(one), !is_rival(one), one.measures.step_s);
    };
    return order(*a) < order(*b);
  });
  return points;
}

// The ranked ones, which stand first.
PointList rivals_of(const PointList& sorted) {
  PointList rivals;
  for (const MergedPoint* merged : sorted)
    if (is_rival(*merged)) rivals.push_back(merged);
  return rivals;
}

// "fastest", "+11 %"; with a mark where the launches do not tell which one is the fastest.
Cell against(const MergedPoint& merged, const MergedPoint& best, bool is_sure) {
  const std::string slower = cells::percent(merged.measures.step_s / best.measures.step_s - 1, 0).text;
  return cells::words((&merged == &best ? "fastest" : "+" + slower + " %") + (is_sure ? "" : kMark));
}

std::string range_text(int64_t least, int64_t most, const char* one, const char* several) {
  return fmt::format("{} {}", least == most ? std::to_string(most) : fmt::format("{} to {}", least, most),
                     most == 1 ? one : several);
}

// What the mark means in this table, and what to do.
class MarkNote {
 public:
  void add(const MergedPoint& merged) {
    const int64_t launches = std::ssize(merged.launches);
    least_ = std::min(least_, launches);
    most_ = std::max(most_, launches);
    if (!merged.measures.has_few_steps()) return;
    ++num_few_;
    least_steps_ = std::min(least_steps_, merged.measures.num_steps);
    most_steps_ = std::max(most_steps_, merged.measures.num_steps);
  }

  void append_to(std::vector<std::string>& notes) const {
    if (most_ < 0) return;
    const std::string launches = range_text(least_, most_, "launch", "launches");
    if (least_ < static_cast<int64_t>(kLeastLaunches))
      notes.push_back(fmt::format(
          "?: another launch may give another order, because these times come from {}, and launches differ "
          "by "
          "more than the steps of one do. To rank strategies, start the suite {} times or more and give "
          "report all studies.",
          launches, kLeastLaunches));
    else
      notes.push_back(
          fmt::format("?: {} do not tell these rows apart from the fastest (at a level of 5 % over the rows "
                      "of a setting). Start the suite more often and give report all studies.",
                      launches));
    if (num_few_ > 0)
      notes.push_back(fmt::format(
          "{} row{} of {}, and fewer than {} steps have no 95 % interval: measure 10 or more (--steps 10).",
          num_few_, num_few_ == 1 ? " is" : "s are", range_text(least_steps_, most_steps_, "step", "steps"),
          kLeastForInterval));
  }

 private:
  int64_t least_ = std::numeric_limits<int64_t>::max(), most_ = -1;  // launches of a marked row
  int64_t num_few_ = 0, least_steps_ = std::numeric_limits<int64_t>::max(), most_steps_ = 0;
};

// A column of efficiency. Where all of its cells have one base, the unit names it; else each cell does.
class EfficiencyColumn {
 public:
  EfficiencyColumn(Scaling scaling, const Efficiencies& all, const std::vector<PointList>& shown)
      : scaling_(scaling), all_(all) {
    for (const PointList& points : shown)
      for (const MergedPoint* merged : points)
        if (const Rated* rated = find(*merged)) bases_.insert(rated->base_ranks);
  }

  Column head() const {
    const bool is_weak = scaling_ == Scaling::weak;
    return {
        .name = is_weak ? "weak eff." : "strong eff.",
        .unit = bases_.size() == 1 ? "% of " + ranks_text(*bases_.begin()) : "%",
        .definition = std::string("efficiency of ") + (is_weak ? "weak" : "strong") +
                      " scaling: speed per rank against that on the fewest ranks measured with the same " +
                      (is_weak ? "batch per rank" : "global batch") +
                      ", which the unit names, or parentheses where rows differ in them."};
  }

  Cell cell(const MergedPoint& merged) const {
    const Rated* rated = find(merged);
    Cell cell = cells::percent(rated == nullptr ? Measures::kNone : rated->point->efficiency.value);
    if (rated != nullptr && bases_.size() > 1) cell.text += fmt::format(" ({})", rated->base_ranks);
    return cell;
  }

  // What the parentheses say.
  std::string note() const {
    return bases_.size() < 2
               ? ""
               : head().name + " (n): against n ranks, the fewest of that strategy that were measured.";
  }

 private:
  const Rated* find(const MergedPoint& merged) const {
    const auto found = all_.find({scaling_, &merged});
    return found == all_.end() ? nullptr : &found->second;
  }

  Scaling scaling_;
  const Efficiencies& all_;
  std::set<int64_t> bases_;
};

std::vector<Column> training_columns(const ColumnsOf<MergedPoint>& speed, const EfficiencyColumn& weak,
                                     const EfficiencyColumn& strong) {
  std::vector<Column> columns = {
      choice_column("strategy"),
      {.name = "step", .unit = "ms", .definition = "median over the steps, of the slowest rank's time."},
      {.name = "vs fastest",
       .definition =
           "step time / that of the fastest strategy - 1. ?: the launches do not show that the row is slower "
           "than the fastest, so the order is not certain; one launch never shows it. unreliable: not "
           "ranked, see the warnings. `single` on several ranks is not ranked, because its ranks train "
           "independent copies."}};
  for (const auto& column : speed) {
    columns.push_back(column.head);
    columns.back().definition = column.definition;
  }
  columns.push_back({.name = "peak memory",
                     .unit = "MiB",
                     .definition = "highest total during a step, on the rank that needs most."});
  columns.push_back({.name = "exposed",
                     .unit = "%",
                     .definition = "the part of a step during which computing waited for communication."});
  columns.push_back(weak.head());
  columns.push_back(strong.head());
  return columns;
}

}  // namespace

OverviewTable training_overview(const std::vector<MergedPoint>& points,
                                const std::vector<ScalingSeries>& scaling) {
  const PlotNames names(points);
  const std::vector<SettingPoints> settings = settings_on_most_ranks(points, names, is_training);
  std::vector<PointList> shown;
  for (const SettingPoints& setting : settings) shown.push_back(in_order(setting.points));
  const Efficiencies efficiencies = efficiencies_of(scaling);
  const EfficiencyColumn weak(Scaling::weak, efficiencies, shown),
      strong(Scaling::strong, efficiencies, shown);
  // The speed of a rank is that of all ranks, which the setting names, divided by their number.
  ColumnsOf<MergedPoint> speed = without(point_throughput_columns(), {"tokens/s/rank"});
  if (std::none_of(points.begin(), points.end(), [](const MergedPoint& one) {
        return std::isnan(one.measures.mfu) && !std::isnan(one.of_matmul);
      }))
    speed = without(std::move(speed), {"of matmul"});  // the MFU says it
  OverviewTable table{"Training, on the most ranks of each setting",
                      "strategies",
                      training_columns(speed, weak, strong),
                      {},
                      {}};
  MarkNote marks;
  for (size_t i = 0; i < settings.size(); ++i) {
    const PointList rivals = rivals_of(shown[i]);
    const size_t num_unsure = rivals.size() < 2 ? 0 : num_perhaps_fastest(rivals);
    OverviewGroup& group = table.groups.emplace_back();
    group.setting = settings[i].name;
    for (size_t place = 0; place < shown[i].size(); ++place) {
      const MergedPoint& merged = *shown[i][place];
      const Measures& m = merged.measures;
      const bool is_sure = num_unsure < 2 || place >= num_unsure, is_ranked = place < rivals.size();
      if (is_ranked && !is_sure) marks.add(merged);
      std::vector<Cell> row = {strategy_cell(merged.point.training), cells::milliseconds(m.step_s),
                               is_unreliable(merged)            ? cells::words("unreliable")
                               : is_ranked && rivals.size() > 1 ? against(merged, *rivals.front(), is_sure)
                                                                : cells::words("")};
      for (const auto& column : speed) row.push_back(column.cell(merged));
      row.insert(row.end(), {cells::mebibytes(m.peak_bytes), cells::percent(m.exposed_s / m.step_s),
                             weak.cell(merged), strong.cell(merged)});
      group.rows.push_back(std::move(row));
    }
  }
  marks.append_to(table.notes);
  for (const EfficiencyColumn* column : {&weak, &strong})
    if (std::string note = column->note(); !note.empty()) table.notes.push_back(std::move(note));
  return table;
}

}  // namespace shardmark
