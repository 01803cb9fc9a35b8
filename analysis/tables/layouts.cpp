// Layouts of the same training beside each other: which is fastest, and what each waits for.
#include "analysis/frame/layouts.h"

#include <algorithm>

#include "analysis/frame/quantities.h"
#include "analysis/frame/training_columns.h"
#include "analysis/stats/bubble.h"
#include "analysis/stats/ranking.h"
#include "analysis/table/axis_columns.h"
#include "analysis/table/cells.h"
#include "analysis/tables/tables.h"

namespace shardmark {
namespace {

struct LayoutRow {
  const MergedPoint *merged, *fastest;
  bool is_sure;  // that it is, or is not, the fastest
};

ColumnsOf<MergedPoint> layout_of_columns() {
  const auto through_point = [](ColumnsOf<Point> columns) {
    return through<MergedPoint>([](const MergedPoint& merged) -> const Point& { return merged.point; },
                                std::move(columns));
  };
  return join(
      ColumnsOf<MergedPoint>{{{"ranks", "", true, true, "", Starts::group},
                              [](const auto& merged) { return cells::count(merged.point.ranks); }},
                             {{"global batch", "samples", true, true, "", Starts::group},
                              [](const auto& merged) { return cells::count(merged.point.global_batch()); },
                              "data-parallel ranks x micro-batches x samples of each: the same for all "
                              "layouts of a group."}},
      through_point(axis_columns(with_layout_axes())));
}

ColumnsOf<MergedPoint> layout_batch_columns() {
  return {{{"micro-batches", "", true, true},
           [](const auto& merged) { return cells::count(merged.point.training.accumulation); }},
          {{"of", "samples", true, true},
           [](const auto& merged) { return cells::count(merged.point.training.batch_size); }}};
}

ColumnsOf<LayoutRow> layout_waiting_columns() {
  constexpr const char* kGroup = "waiting for";
  return join(columns_of<LayoutRow>({{"exposed_data_share", kGroup},
                                     {"exposed_tensor_share", kGroup, "", true},
                                     {"exposed_context_share", kGroup, "", true},
                                     {"exposed_expert_share", kGroup, "", true},
                                     {"exposed_pipeline_share", kGroup, "", true}}),
              ColumnsOf<LayoutRow>{
                  {{"bubble", "% of step", true, true, kGroup},
                   [](const LayoutRow& row) {
                     return cells::percent(bubble_s(*row.merged) / row.merged->measures.step_s);
                   },
                   "part of waiting for stages: what the schedule leaves idle, with blocks that take as long "
                   "as they were measured to on each stage, and messages that take no time."}});
}

ColumnsOf<LayoutRow> layout_speed_columns() {
  return join(
      columns_of<LayoutRow>({{"step"}}),
      ColumnsOf<LayoutRow>{
          {{"x fastest", ""},
           [](const auto& row) {
             Cell cell = cells::number(row.merged->measures.step_s / row.fastest->measures.step_s, 3);
             if (!row.is_sure) cell.text += " ?";
             return cell;
           },
           "step / that of the fastest layout of the group. ?: the launches do not show that the layout is "
           "slower than the fastest, so the order is not certain; fewer than 3 launches never do."}});
}

}  // namespace

Table layouts_table(const MergedPoints& points) {
  std::vector<LayoutRow> rows;
  for (const Layouts& layouts : layouts_of(points))
    for (size_t place = 0, unsure = num_perhaps_fastest(layouts); place < layouts.size(); ++place)
      rows.push_back({layouts[place], layouts.front(), unsure < 2 || place >= unsure});
  const TrainingColumns labels(points);
  const ColumnsOf<LayoutRow> strategy = {
      {choice_column("strategy"), [&](const auto& row) { return labels.strategy(*row.merged); }}};
  Table table = make_table(
      "layouts",
      "Layouts: the same global batch over tensor, context, expert, pipeline and data-parallel ranks",
      join(via(&LayoutRow::merged,
               without(labels.family(), {"accumulation", "tensor", "sequence parallel", "context", "expert",
                                         "dispatch", "pipeline", "schedule", "stages by", "rank order"})),
           via(&LayoutRow::merged, layout_of_columns()), strategy,
           via(&LayoutRow::merged, layout_batch_columns()), layout_speed_columns(),
           via(&LayoutRow::merged, point_throughput_columns()), columns_of<LayoutRow>({{"peak_bytes"}}),
           layout_waiting_columns(), via(&LayoutRow::merged, TrainingColumns::warnings())),
      rows);
  if (std::any_of(rows.begin(), rows.end(), [](const LayoutRow& row) { return !row.is_sure; }))
    table.notes.emplace_back(
        "?: another launch may give another order. To rank layouts, start the suite 3 times or more and give "
        "report all studies.");
  return table;
}

}  // namespace shardmark
