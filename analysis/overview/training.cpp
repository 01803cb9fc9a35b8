// Which strategy is fastest, and what it costs: on the most ranks of each setting.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "analysis/frame/quantities.h"
#include "analysis/frame/rows.h"
#include "analysis/frame/training_columns.h"
#include "analysis/overview/overview.h"
#include "analysis/overview/ranked.h"
#include "analysis/table/axis_columns.h"
#include "analysis/table/cells.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

// Whether the point takes part in the ranking. An unreliable one does not, nor does `single` on several
// ranks: these train independent copies, and are measured so that others can be compared with them.
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

// What the others are held against: the fastest rival, or where there is none, of what trains one model.
const MergedPoint& fastest_of(const PointList& sorted) {
  for (const auto is_one : {is_rival, trains_one_model})
    for (const MergedPoint* merged : sorted)
      if (is_one(*merged)) return *merged;
  return *sorted.front();
}

// The speed of a rank is that of all ranks, which the setting names, divided by their number; samples are
// there only where no row has tokens, and the share of a matrix product only where a row has no MFU.
ColumnsOf<MergedPoint> number_columns(const std::vector<MergedPoint>& points) {
  ColumnsOf<MergedPoint> speed = without(point_throughput_columns(), {"tokens/s/rank"});
  const auto any = [&](auto holds) {
    return std::any_of(points.begin(), points.end(),
                       [&](const MergedPoint& one) { return is_training(one) && holds(one); });
  };
  if (any([](const MergedPoint& one) { return throughput_of(one).is_of_tokens(); }))
    speed = without(std::move(speed), {"samples/s"});
  if (!any([](const MergedPoint& one) { return std::isnan(one.measures.mfu) && !std::isnan(one.of_matmul); }))
    speed = without(std::move(speed), {"of matmul"});
  return join(std::move(speed), columns_of({{"peak_bytes"}, {"exposed_share"}}));
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
  const ColumnsOf<MergedPoint> numbers = number_columns(points);
  OverviewTable table{"Training, on the most ranks of each setting",
                      "strategies",
                      {choice_column("strategy"), column_of({"step"}),
                       slower_column("strategy",
                                     "`single` on several ranks trains independent copies: it is the step "
                                     "without communication, and not ranked.")},
                      {},
                      {}};
  for (Column& column : heads_of(numbers)) table.columns.push_back(std::move(column));
  TierNotes notes;
  std::vector<LabelParts> labels;  // of the groups
  for (const SettingPoints& setting : settings) {
    const PointList shown = in_order(setting.points);
    const Ranking ranking(those(shown, is_rival));
    const MergedPoint& fastest = fastest_of(shown);
    OverviewGroup& group = table.groups.emplace_back();
    std::vector<LabelParts> strategies, families;
    for (const MergedPoint* merged : shown) {
      const Tier tier = group.tiers.emplace_back(ranking.tier(*merged));
      if (shown.size() > 1) notes.add(*merged, tier);
      std::vector<Cell>& row = group.rows.emplace_back();
      row = {strategy_cell(merged->point.training), cell_of(quantity("step"), *merged),
             shown.size() > 1 ? slower_cell(*merged, fastest, tier)
                              : cells::words(is_unreliable(*merged) ? "unreliable" : "")};
      for (const auto& column : numbers) row.push_back(column.cell(*merged));
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
