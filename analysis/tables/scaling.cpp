// Weak and strong scaling: throughput and efficiency over ranks, with the base that efficiency refers to.
#include "analysis/stats/scaling.h"

#include "analysis/frame/quantities.h"
#include "analysis/frame/training_columns.h"
#include "analysis/table/axis_columns.h"
#include "analysis/table/cells.h"
#include "analysis/tables/tables.h"

namespace shardmark {
namespace {

struct ScalingRow {
  const ScalingSeries* series;
  const ScalingPoint* point;
  const MergedPoint* merged;
};

std::vector<ScalingRow> rows_of(Scaling scaling, const std::vector<ScalingSeries>& all) {
  std::vector<ScalingRow> rows;
  for (const ScalingSeries& series : all)
    if (series.scaling == scaling)
      for (const ScalingPoint& point : series.points) rows.push_back({&series, &point, point.merged});
  return rows;
}

auto efficiency_of(double Estimate::*part) {
  return [part](const ScalingRow& row) { return cells::percent(row.point->efficiency.*part); };
}

ColumnsOf<ScalingRow> series_columns(const TrainingColumns& labels, bool weak) {
  return {{choice_column("strategy", false, Starts::group),
           [&](const auto& row) { return labels.strategy(*row.merged); }},
          {{weak ? "batch per rank" : "global batch", "", true, true, "", Starts::group},
           [](const auto& row) { return cells::count(row.series->fixed_batch); }},
          {{"over", "", false, true, "", Starts::group},
           [](const auto& row) { return cells::words(unit_text(*row.series)); }}};
}

ColumnsOf<ScalingRow> point_columns(bool weak) {
  return {{{"ranks", ""}, [](const auto& row) { return cells::count(row.merged->point.ranks); }},
          {{"nodes", "", true, true},
           [](const auto& row) {
             return row.merged->nodes > 0 ? cells::count(row.merged->nodes) : cells::words("");
           }},
          {{weak ? "global batch" : "batch per rank", ""}, [weak](const auto& row) {
             const Point& p = row.merged->point;
             return cells::count(weak ? p.global_batch() : p.training.batch_size);
           }}};
}

ColumnsOf<ScalingRow> efficiency_columns(bool weak) {
  constexpr const char* kInterval =
      "the same from the outer ends of both steps' 95 % intervals; covers at least 95 %.";
  return join(
      columns_of<ScalingRow>({{"step"}}),
      ColumnsOf<ScalingRow>{
          {{"base n0", "", true, true},
           [](const auto& row) { return cells::count(row.series->points.front().merged->point.ranks); },
           "the smallest number of ranks measured in the series."},
          {{"median", "%", true, false, "efficiency"},
           efficiency_of(&Estimate::value),
           weak ? "T(n0) / T(n), T the step time: 100 % when more ranks cost no time (Gustafson, CACM 31(5), "
                  "1988)."
                : "n0 T(n0) / (n T(n)), T the step time: 100 % when n ranks are n / n0 times as fast as n0."},
          {{"low", "%", true, false, "efficiency"}, efficiency_of(&Estimate::low), kInterval},
          {{"high", "%", true, false, "efficiency"}, efficiency_of(&Estimate::high), kInterval}});
}

ColumnsOf<ScalingRow> strong_columns() {
  return {
      {{"speed-up", ""},
       [](const auto& row) { return cells::number(row.point->speed_up.value, 3); },
       "S = T(1) / T(n), where one rank was measured; over nodes n counts nodes, where one node was "
       "measured."},
      {{"Karp-Flatt", ""},
       [](const auto& row) { return cells::number(row.point->karp_flatt, 3); },
       "(1/S - 1/n) / (1 - 1/n), n as for the speed-up: the serial fraction that would explain it. If it "
       "grows with n, communication and imbalance cost more with every rank (node); if it stays, serial work "
       "does (Karp and Flatt, CACM 33(5), 1990)."}};
}

}  // namespace

Table scaling_table(Scaling scaling, const MergedPoints& points, const std::vector<ScalingSeries>& all) {
  const bool weak = scaling == Scaling::weak;
  const TrainingColumns labels(points);
  Table table =
      make_table(weak ? "scaling.weak" : "scaling.strong",
                 weak ? "Weak scaling: constant batch per rank" : "Strong scaling: constant global batch",
                 join(via(&ScalingRow::merged, labels.family()), series_columns(labels, weak),
                      point_columns(weak), via(&ScalingRow::merged, point_throughput_columns()),
                      efficiency_columns(weak), weak ? ColumnsOf<ScalingRow>{} : strong_columns(),
                      via(&ScalingRow::merged, TrainingColumns::warnings())),
                 rows_of(scaling, all));
  table.explanations.emplace_back("`single` is not here: its ranks train independent copies.");
  for (const std::string& note : labels.warning_notes()) table.notes.push_back(note);
  return table;
}

}  // namespace shardmark
