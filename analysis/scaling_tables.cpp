// Weak and strong scaling: throughput and efficiency over ranks, with the base that efficiency refers to.
#include "analysis/cells.h"
#include "analysis/scaling.h"
#include "analysis/tables.h"
#include "analysis/training_columns.h"

namespace shardmark {
namespace {

std::vector<Cell> estimate_cells(const Estimate& estimate) {
  return {cells::percent(estimate.value), cells::percent(estimate.low), cells::percent(estimate.high)};
}

std::vector<Cell> row(const TrainingColumns& labels, const ScalingSeries& series, const ScalingPoint& point) {
  const MergedPoint& merged = *point.merged;
  const Point& p = merged.point;
  const Measures& m = merged.measures;
  const int64_t other = series.scaling == Scaling::weak ? p.global_batch() : p.training.batch_size;
  std::vector<Cell> cells = concat<Cell>(
      {labels.family_cells(merged),
       {labels.strategy(merged), cells::count(series.fixed_batch), cells::words(unit_text(series)),
        cells::count(p.ranks), merged.nodes > 0 ? cells::count(merged.nodes) : cells::words(""),
        cells::count(other), cells::number(m.samples_per_s), cells::number(m.tokens_per_s),
        cells::milliseconds(m.step_s), cells::count(series.points.front().merged->point.ranks)},
       estimate_cells(point.efficiency)});
  if (series.scaling == Scaling::strong) {
    cells.push_back(cells::number(point.speed_up.value, 3));
    cells.push_back(cells::number(point.karp_flatt, 3));
  }
  return concat<Cell>({cells, TrainingColumns::mark_cells(merged)});
}

std::vector<Column> columns(Scaling scaling) {
  const bool weak = scaling == Scaling::weak;
  std::vector<Column> strong_only = {{"speed-up", ""}, {"Karp-Flatt", ""}};
  if (weak) strong_only.clear();
  return concat<Column>({TrainingColumns::family_columns(),
                         {{"strategy", "", false},
                          {weak ? "batch per rank" : "global batch", "", true, true},
                          {"over", "", false, true},
                          {"ranks", ""},
                          {"nodes", "", true, true},
                          {weak ? "global batch" : "batch per rank", ""},
                          {"samples/s", ""},
                          {"tokens/s", "", true, true},
                          {"step", "ms"},
                          {"base n0", "", true, true},
                          {"median", "%", true, false, "efficiency"},
                          {"low", "%", true, false, "efficiency"},
                          {"high", "%", true, false, "efficiency"}},
                         strong_only,
                         TrainingColumns::mark_columns()});
}

Table scaling_table(Scaling scaling, const MergedPoints& points, const std::vector<ScalingSeries>& all,
                    Table table) {
  table.columns = columns(scaling);
  table.num_group_columns = TrainingColumns::kNumFamilyColumns + 3;
  table.num_section_columns = TrainingColumns::kNumSectionColumns;
  const TrainingColumns labels(points);
  for (const ScalingSeries& series : all)
    if (series.scaling == scaling)
      for (const ScalingPoint& point : series.points) table.rows.push_back(row(labels, series, point));
  table.notes.push_back(
      "The base n0 is the smallest number of ranks measured in the series. low, high: what the 95 % "
      "intervals of "
      "both step times allow at most.");
  table.notes.push_back("`single` is not here: its ranks train independent copies.");
  for (const std::string& note : labels.mark_notes()) table.notes.push_back(note);
  return table;
}

}  // namespace

Table weak_scaling_table(const MergedPoints& points, const std::vector<ScalingSeries>& all) {
  return scaling_table(Scaling::weak, points, all,
                       {"weak_scaling",
                        "Weak scaling: the batch of each rank stays the same",
                        {"efficiency = T(n0) / T(n), T the step time: 100 % when more ranks cost no time."},
                        {},
                        {},
                        0});
}

Table strong_scaling_table(const MergedPoints& points, const std::vector<ScalingSeries>& all) {
  return scaling_table(
      Scaling::strong, points, all,
      {"strong_scaling",
       "Strong scaling: the global batch stays the same",
       {"efficiency = n0 T(n0) / (n T(n)), T the step time: 100 % when n ranks are n times as fast as one.",
        "speed-up S = T(1) / T(n). Karp-Flatt = (1/S - 1/n) / (1 - 1/n): the serial fraction that would "
        "explain this "
        "speed-up. If it grows with n, communication and imbalance cost more with every rank; if it stays, "
        "serial work does. "
        "Both need the point on one rank."},
       {},
       {},
       0});
}

}  // namespace shardmark
