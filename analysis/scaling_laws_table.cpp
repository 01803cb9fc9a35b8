// The laws of scaling that were fitted, those that were refused and why, and where efficiency falls below 80
// %.
#include <fmt/format.h>

#include <cmath>

#include "analysis/cells.h"
#include "analysis/scaling.h"
#include "analysis/tables.h"
#include "analysis/training_columns.h"
#include "base/units.h"

namespace shardmark {
namespace {

// Which series a row is about.
std::vector<Column> series_columns() {
  return concat<Column>({TrainingColumns::family_columns(),
                         {{"scaling", "", false, true},
                          {"strategy", "", false},
                          {"batch", "", true, true},
                          {"over", "", false, true}}});
}

std::vector<Cell> series_cells(const TrainingColumns& labels, const ScalingSeries& series) {
  const MergedPoint& first = *series.points.front().merged;
  return concat<Cell>({labels.family_cells(first),
                       {cells::words(std::string(to_text(series.scaling))), labels.strategy(first),
                        cells::count(series.fixed_batch), cells::words(unit_text(series))}});
}

// fold: left out where no row has one.
std::vector<Column> estimate_columns(const std::string& group, const std::string& unit, bool fold = false) {
  return {{"value", unit, true, fold, group},
          {"low", unit, true, fold, group},
          {"high", unit, true, fold, group}};
}

std::vector<Cell> percent_cells(const Estimate& e) {
  return {cells::percent(e.value, 2), cells::percent(e.low, 2), cells::percent(e.high, 2)};
}

// infinite: a word for it.
std::vector<Cell> count_cells(const Estimate& e, const std::string& infinite) {
  const auto cell = [&](double value) {
    return std::isinf(value) ? Cell{infinite, infinite} : cells::number(value, 3);
  };
  return {cell(e.value), cell(e.low), cell(e.high)};
}

std::string counts_text(const ScalingSeries& series) {
  return fmt::format("{}-{}", series.points.front().merged->point.ranks,
                     series.points.back().merged->point.ranks);
}

std::string beyond_text(const ScalingSeries& series) {
  const auto most = static_cast<double>(series.points.back().merged->point.ranks);
  return "> " + format_count(Crossing::kReach * most);
}

Table table_of_series(std::string key, std::string title, std::vector<Column> columns) {
  Table table{
      std::move(key), std::move(title), {}, concat<Column>({series_columns(), std::move(columns)}), {}};
  table.num_group_columns = TrainingColumns::kNumFamilyColumns + 1;
  table.num_section_columns = TrainingColumns::kNumSectionColumns;
  return table;
}

}  // namespace

Table scaling_laws_table(const MergedPoints& points, const std::vector<ScalingSeries>& all) {
  const TrainingColumns labels(points);
  Table table =
      table_of_series("scaling_laws", "Laws of scaling, fitted",
                      concat<Column>({{{"ranks", "", false}, {"law", "", false}},
                                      estimate_columns("s or alpha", "%"),
                                      estimate_columns("beta", "%", true),
                                      concat<Column>({estimate_columns("limit", ""), {{"off by", "%"}}})}));
  for (const ScalingSeries& series : all)
    for (const ScalingFit& fit : series.fits) {
      if (!fit.refused.empty()) continue;
      const Estimate beta = fit.parameters.size() > 1 ? fit.parameters[1].estimate : Estimate{};
      table.rows.push_back(concat<Cell>(
          {series_cells(labels, series),
           concat<Cell>({{cells::words(counts_text(series)), cells::words(std::string(to_text(fit.law)))},
                         percent_cells(fit.parameters.front().estimate),
                         percent_cells(beta)}),
           count_cells(fit.limit, "none"),
           {cells::percent(fit.deviation)}}));
    }
  table.notes = {
      "Throughput on n: Amdahl (strong scaling) n / (1 + s (n-1)), s the part of the work that does not "
      "speed up; "
      "Gustafson (weak) s + (1-s) n; USL, the Universal Scalability Law, n / (1 + alpha (n-1) + beta n "
      "(n-1)), "
      "alpha: what waits its turn, beta: what every pair exchanges.",
      "limit: of Amdahl the speed-up 1/s that no count exceeds; of USL the count with the highest "
      "throughput. off by: "
      "the largest distance of a measured step time from the curve.",
      "low, high: 95 % interval by a parametric bootstrap of the points around the curve. A fit holds for "
      "the counts "
      "that it saw; beyond them it is a guess.",
  };
  return table;
}

Table refused_fits_table(const MergedPoints& points, const std::vector<ScalingSeries>& all) {
  const TrainingColumns labels(points);
  Table table = table_of_series("refused_fits", "Laws of scaling that were not fitted, and why",
                                {{"ranks", "", false}, {"law", "", false}, {"reason", "", false}});
  for (const ScalingSeries& series : all)
    for (const ScalingFit& fit : series.fits)
      if (!fit.refused.empty())
        table.rows.push_back(
            concat<Cell>({series_cells(labels, series),
                          {cells::words(counts_text(series)), cells::words(std::string(to_text(fit.law))),
                           cells::words(fit.refused)}}));
  return table;
}

Table efficiency_limits_table(const MergedPoints& points, const std::vector<ScalingSeries>& all) {
  const TrainingColumns labels(points);
  Table table =
      table_of_series("efficiency_limits", "Efficiency: where it falls below 80 %",
                      concat<Column>({{{"ranks", "", false}, {"at the most", "%", true, false, "efficiency"}},
                                      estimate_columns("falls below 80 % at ranks", ""),
                                      {{"from", "", false}}}));
  for (const ScalingSeries& series : all)
    table.rows.push_back(concat<Cell>(
        {series_cells(labels, series),
         {cells::words(counts_text(series)), cells::percent(series.points.back().efficiency.value)},
         count_cells(series.below_80.ranks, beyond_text(series)),
         {cells::words(series.below_80.from)}}));
  table.notes = {
      "efficiency at the most: on the largest number of ranks measured. from measured: between the counts "
      "low and "
      "high, value on a line through both; from a law: its curve beyond what was measured, with a 95 % "
      "interval, and "
      "nothing is said beyond 8 times the largest count (>). -: no count that is free of doubts is below 80 "
      "%, "
      "and no law was fitted.",
  };
  return table;
}

}  // namespace shardmark
