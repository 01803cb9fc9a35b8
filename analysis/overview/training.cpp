// Which strategy is fastest, and what it costs: on the most ranks of each setting.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "analysis/frame/rows.h"
#include "analysis/frame/training_columns.h"
#include "analysis/overview/overview.h"
#include "analysis/overview/ranked.h"
#include "analysis/stats/ranking.h"
#include "analysis/table/axis_columns.h"
#include "analysis/table/cells.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

// The ranks of `single` train independent copies: what it is measured for is to compare others with it.
bool is_rival(const MergedPoint& merged) {
  return !is_unreliable(merged) && (!is_replicas(merged) || merged.point.ranks == 1);
}

// `single` first, as the step without communication; then rivals, the fastest of them first; then unreliable
// ones.
PointList in_order(PointList points) {
  std::stable_sort(points.begin(), points.end(), [](auto* a, auto* b) {
    const auto order = [](const MergedPoint& one) {
      return std::tuple(trains_one_model(one), is_unreliable(one), one.measures.step_s);
    };
    return order(*a) < order(*b);
  });
  return points;
}

// The ranked ones.
PointList rivals_of(const PointList& sorted) {
  PointList rivals;
  for (const MergedPoint* merged : sorted)
    if (is_rival(*merged)) rivals.push_back(merged);
  return rivals;
}

// The tier of each point among these, which are in order.
class Ranking {
 public:
  explicit Ranking(const PointList& sorted) : sorted_(sorted), rivals_(rivals_of(sorted)) {
    if (rivals_.size() > 1) num_unsure_ = num_perhaps_fastest(rivals_);
  }

  Tier tier(const MergedPoint& merged) const {
    if (is_unreliable(merged)) return Tier::unreliable;
    const auto place =
        static_cast<size_t>(std::find(rivals_.begin(), rivals_.end(), &merged) - rivals_.begin());
    if (place == rivals_.size()) return Tier::unranked;
    if (num_unsure_ > 1 && place < num_unsure_) return Tier::perhaps;
    return place == 0 && rivals_.size() > 1 ? Tier::fastest : Tier::slower;
  }

  Cell cell(const MergedPoint& merged) const {
    if (sorted_.size() < 2) return cells::words(is_unreliable(merged) ? "unreliable" : "");
    return slower_cell(merged.measures.step_s / fastest().measures.step_s, tier(merged));
  }

 private:
  const MergedPoint& fastest() const {
    if (!rivals_.empty()) return *rivals_.front();
    for (const MergedPoint* merged : sorted_)
      if (trains_one_model(*merged)) return *merged;
    return *sorted_.front();
  }

  const PointList& sorted_;
  PointList rivals_;
  size_t num_unsure_ = 0;
};

std::vector<Column> training_columns(const ColumnsOf<MergedPoint>& speed) {
  std::vector<Column> columns = {
      choice_column("strategy"),
      {.name = "step", .unit = "ms", .definition = "median over the steps, of the slowest rank's time."},
      slower_column("strategy",
                    "`single` on several ranks trains independent copies: it is the step without "
                    "communication, and not ranked.")};
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
  return columns;
}

// The speed of a rank is that of all ranks, which the setting names, divided by their number; samples are
// there only where no row has tokens, and the share of a matrix product only where a row has no MFU.
ColumnsOf<MergedPoint> speed_columns(const std::vector<MergedPoint>& points) {
  ColumnsOf<MergedPoint> speed = without(point_throughput_columns(), {"tokens/s/rank"});
  const auto any = [&](auto holds) {
    return std::any_of(points.begin(), points.end(),
                       [&](const MergedPoint& one) { return is_training(one) && holds(one); });
  };
  if (any([](const MergedPoint& one) { return throughput_of(one).is_of_tokens(); }))
    speed = without(std::move(speed), {"samples/s"});
  if (!any([](const MergedPoint& one) { return std::isnan(one.measures.mfu) && !std::isnan(one.of_matmul); }))
    speed = without(std::move(speed), {"of matmul"});
  return speed;
}

LabelPart strategy_part(const MergedPoint& merged) {
  LabelPart part = choice_part("strategy", strategy_text(merged.point.training), Said::always);
  if (!trains_one_model(merged)) part.text += ", no communication";
  return part;
}

}  // namespace

OverviewTable training_overview(const std::vector<MergedPoint>& points) {
  const PlotNames names(points);
  const std::vector<SettingPoints> settings = settings_on_most_ranks(points, names, is_training);
  const ColumnsOf<MergedPoint> speed = speed_columns(points);
  OverviewTable table{
      "Training, on the most ranks of each setting", "strategies", training_columns(speed), {}, {}};
  TierNotes notes;
  std::vector<LabelParts> labels;  // of the groups
  for (const SettingPoints& setting : settings) {
    const PointList shown = in_order(setting.points);
    const Ranking ranking(shown);
    OverviewGroup& group = table.groups.emplace_back();
    std::vector<LabelParts> strategies, families;
    for (const MergedPoint* merged : shown) {
      const Measures& m = merged->measures;
      if (shown.size() > 1) notes.add(*merged, ranking.tier(*merged));
      std::vector<Cell> row = {strategy_cell(merged->point.training), cells::milliseconds(m.step_s),
                               ranking.cell(*merged)};
      for (const auto& column : speed) row.push_back(column.cell(*merged));
      row.insert(row.end(), {cells::mebibytes(m.peak_bytes), cells::percent(m.exposed_s / m.step_s)});
      group.rows.push_back(std::move(row));
      strategies.push_back({strategy_part(*merged)});
      families.push_back(names.parts(*merged, {{"batch", setting.batch}, {"ranks", setting.ranks}}));
    }
    LabelParts& parts = labels.emplace_back(common_parts(families));
    parts.push_back({"strategy", name_rows(group, strategies)});
  }
  name_groups(table, labels);
  notes.append_to(table.notes);
  return table;
}

}  // namespace shardmark
