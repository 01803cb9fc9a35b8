// Amdahl's law beside the measured speed-ups of strong scaling.
#include <fmt/format.h>

#include "analysis/amdahl.h"
#include "analysis/cells.h"
#include "analysis/scaling.h"
#include "analysis/tables.h"
#include "analysis/training_columns.h"

namespace shardmark {
namespace {

std::vector<StepTime> fitted_times(const ScalingSeries& series) {
  std::vector<StepTime> times;
  for (const MergedPoint* merged : series) {
    const Measures& m = merged->measures;
    if (!m.oversubscribed) times.push_back({merged->point.ranks, m.step_s, m.step_low_s, m.step_high_s});
  }
  return times;
}

std::vector<Cell> row(const TrainingColumns& labels, const MergedPoint& base, const MergedPoint& merged,
                      const SerialFraction& serial) {
  const auto ranks = static_cast<double>(merged.point.ranks);
  const double speedup = base.measures.step_s / merged.measures.step_s;
  const double modelled = amdahl_speedup(serial.value, ranks);
  return concat<Cell>(
      {labels.family_cells(merged),
       {labels.strategy(merged), cells::count(merged.point.global_batch()), cells::percent(serial.value, 2),
        cells::percent(serial.low, 2), cells::percent(serial.high, 2),
        cells::words(serial.fitted ? "fit" : "estimate"), cells::count(merged.point.ranks),
        cells::number(speedup, 3), cells::number(modelled, 3), cells::difference(speedup, modelled),
        cells::number(serial.value > 0 && serial.value <= 1 ? 1 / serial.value : Measures::kNone, 3)},
       TrainingColumns::mark_cells(merged)});
}

std::vector<Column> columns() {
  return concat<Column>({TrainingColumns::family_columns(),
                         {{"strategy", "", false},
                          {"global batch", "", true, true},
                          {"value", "%", true, false, "serial fraction s"},
                          {"low", "%", true, false, "serial fraction s"},
                          {"high", "%", true, false, "serial fraction s"},
                          {"from", "", false, false, "serial fraction s"},
                          {"ranks", ""},
                          {"measured", "", true, false, "speed-up"},
                          {"modelled", "", true, false, "speed-up"},
                          {"difference", "%", true, false, "speed-up"},
                          {"limit", "", true, false, "speed-up"}},
                         TrainingColumns::mark_columns()});
}

std::vector<std::string> notes(bool any_estimate, bool any_outside, size_t left_out) {
  std::vector<std::string> notes = {
      "Amdahl: S(n) = 1 / (s + (1-s)/n) with the serial fraction s; the limit 1/s is what no number of ranks "
      "exceeds. "
      "Measured: S = T(1) / T(n) at the same global batch (strong scaling).",
      fmt::format("fit: least squares over the speed-ups of at least {} rank counts. low, high: its 95 % "
                  "interval, from the "
                  "residuals (Student's t) and the interval of T(1).",
                  kLeastFittedRankCounts),
  };
  if (any_estimate)
    notes.push_back(fmt::format(
        "estimate: fewer than {} rank counts allow no fit. s is then the Karp-Flatt value of the most "
        "ranks; it has no interval, and the model meets that point by construction.",
        kLeastFittedRankCounts));
  if (any_outside)
    notes.push_back(
        "s above 100 %: more ranks were slower than one. s below 0: they were faster than linear. The law "
        "knows neither.");
  if (left_out > 0)
    notes.push_back(fmt::format(
        "Left out: {} series without a point on one rank, or with fewer than 2 rank counts that are "
        "not oversubscribed.",
        left_out));
  return notes;
}

}  // namespace

Table amdahl_table(const MergedPoints& points) {
  Table table{"amdahl", "Amdahl: the serial part of a step, from strong scaling", {}, columns(), {}, 0};
  table.num_group_columns = TrainingColumns::kNumFamilyColumns + 2;
  table.num_section_columns = TrainingColumns::kNumSectionColumns;
  const TrainingColumns labels(points);
  bool any_estimate = false, any_outside = false;
  size_t left_out = 0;
  for (const ScalingSeries& series : scaling_series(points, Scaling::strong)) {
    const auto serial = serial_fraction(fitted_times(series));
    if (!serial) {
      ++left_out;
      continue;
    }
    any_estimate |= !serial->fitted;
    any_outside |= serial->value < 0 || serial->value > 1;
    for (const MergedPoint* merged : series)
      table.rows.push_back(row(labels, *series.front(), *merged, *serial));
  }
  table.notes = notes(any_estimate, any_outside, left_out);
  for (const std::string& note : labels.mark_notes()) table.notes.push_back(note);
  return table;
}

}  // namespace shardmark
