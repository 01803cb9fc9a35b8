// Weak and strong scaling: throughput and efficiency over ranks, with the base that efficiency refers to.
#include "analysis/cells.h"
#include "analysis/scaling.h"
#include "analysis/tables.h"
#include "analysis/training_columns.h"

namespace shardmark {
namespace {

double efficiency(Scaling scaling, const Point& base, double base_step_s, const Point& point, double step_s) {
  return scaling == Scaling::weak ? weak_efficiency(base_step_s, step_s)
                                  : strong_efficiency(base.ranks, base_step_s, point.ranks, step_s);
}

// The median, and the interval that the intervals of both steps allow at most.
std::vector<Cell> efficiency_cells(Scaling scaling, const MergedPoint& base, const MergedPoint& merged) {
  const Measures &b = base.measures, &m = merged.measures;
  const auto of = [&](double base_step_s, double step_s) {
    return cells::percent(efficiency(scaling, base.point, base_step_s, merged.point, step_s));
  };
  if (&base == &merged) return {of(b.step_s, m.step_s), cells::words(""), cells::words("")};
  return {of(b.step_s, m.step_s), of(b.step_low_s, m.step_high_s), of(b.step_high_s, m.step_low_s)};
}

std::vector<Cell> row(Scaling scaling, const TrainingColumns& labels, const MergedPoint& base,
                      const MergedPoint& merged) {
  const Point& p = merged.point;
  const Measures& m = merged.measures;
  const int64_t fixed = scaling == Scaling::weak ? p.training.batch_size : p.global_batch();
  const int64_t other = scaling == Scaling::weak ? p.global_batch() : p.training.batch_size;
  std::vector<Cell> cells =
      concat<Cell>({labels.family_cells(merged),
                    {labels.strategy(merged), cells::count(fixed), cells::count(p.ranks), cells::count(other),
                     cells::number(m.samples_per_s), cells::number(m.tokens_per_s),
                     cells::milliseconds(m.step_s), cells::count(base.point.ranks)},
                    efficiency_cells(scaling, base, merged)});
  if (scaling == Scaling::strong) {
    const bool from_one = base.point.ranks == 1;
    const double speedup = from_one ? base.measures.step_s / m.step_s : Measures::kNone;
    cells.push_back(cells::number(speedup, 3));
    cells.push_back(cells::number(karp_flatt(speedup, p.ranks), 3));
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
                          {"ranks", ""},
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

Table scaling_table(Scaling scaling, const MergedPoints& points, Table table) {
  table.columns = columns(scaling);
  table.num_group_columns = TrainingColumns::kNumFamilyColumns + 2;
  table.num_section_columns = TrainingColumns::kNumSectionColumns;
  const TrainingColumns labels(points);
  for (const ScalingSeries& series : scaling_series(points, scaling))
    for (const MergedPoint* merged : series)
      table.rows.push_back(row(scaling, labels, *series.front(), *merged));
  table.notes.push_back(
      "The base n0 is the smallest number of ranks measured in the series. low, high: what the 95 % "
      "intervals of both step "
      "times allow at most.");
  table.notes.push_back("`single` is not here: its ranks train independent copies.");
  for (const std::string& note : labels.mark_notes()) table.notes.push_back(note);
  return table;
}

}  // namespace

Table weak_scaling_table(const MergedPoints& points) {
  return scaling_table(Scaling::weak, points,
                       {"weak_scaling",
                        "Weak scaling: the batch of each rank stays the same",
                        {"efficiency = T(n0) / T(n), T the step time: 100 % when more ranks cost no time."},
                        {},
                        {},
                        0});
}

Table strong_scaling_table(const MergedPoints& points) {
  return scaling_table(
      Scaling::strong, points,
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
