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

// "64 or 2"
Cell further_cell(const ScalingSeries& series, const ScalingFit& fit) {
  std::vector<std::string> ranks;
  for (const double units : fit.further)
    ranks.push_back(format_count(units * static_cast<double>(series.ranks_per_unit)));
  return cells::words(fmt::format("{}", fmt::join(ranks, " or ")));
}

const Estimate& parameter(const ScalingFit& fit, std::string_view symbol) {
  static const Estimate kAbsent;
  for (const FittedParameter& one : fit.parameters)
    if (one.symbol == symbol) return one.estimate;
  return kAbsent;
}

// Of USL in ranks, not units.
Estimate limit_or_peak(const ScalingSeries& series, const ScalingFit& fit) {
  if (fit.law != ScalingLaw::usl) return fit.limit;
  const auto ranks = static_cast<double>(series.ranks_per_unit);
  return {ranks * fit.peak.value, ranks * fit.peak.low, ranks * fit.peak.high};
}

// What the intervals take for granted.
std::string assumption(const ScalingFit& fit) {
  if (fit.lack.degrees == 0) return "the law, untested";
  return fit.from_launches ? "launches scatter alike" : "counts scatter alike";
}

Cell held_out_cell(const Extrapolation& largest) {
  const auto& [value, low, high] = largest.predicted_s;
  if (std::isnan(value)) return cells::words("");
  const bool inside = low <= largest.measured_s && largest.measured_s <= high;
  return {inside ? "inside" : "outside", inside};
}

Table table_of_fits(std::string key, std::string title, std::vector<Column> columns,
                    const MergedPoints& points, const std::vector<ScalingSeries>& all,
                    std::vector<Cell> (*cells_of)(const ScalingSeries&, const ScalingFit&), bool refused) {
  const TrainingColumns labels(points);
  Table table =
      table_of_series(std::move(key), std::move(title),
                      concat<Column>({{{"ranks", "", false}, {"law", "", false}}, std::move(columns)}));
  for (const ScalingSeries& series : all)
    for (const ScalingFit& fit : series.fits)
      if (fit.refused.empty() != refused)
        table.rows.push_back(concat<Cell>({series_cells(labels, series),
                                           {cells::words(counts_text(series)), cells::words(to_text(fit))},
                                           cells_of(series, fit)}));
  return table;
}

// From 1e-1 down to 1e-9, and worth the same digits everywhere.
Cell beta_cell(double beta) {
  return std::isnan(beta) ? cells::words("") : Cell{fmt::format("{:.3g}", beta), beta};
}

std::vector<Cell> law_cells(const ScalingSeries& series, const ScalingFit& fit) {
  const Estimate& beta = parameter(fit, "beta");
  return concat<Cell>({percent_cells(fit.parameters.front().estimate),
                       percent_cells(parameter(fit, "delta")),
                       {beta_cell(beta.value), beta_cell(beta.low), beta_cell(beta.high)},
                       count_cells(limit_or_peak(series, fit), "none")});
}

std::vector<Cell> quality_cells(const ScalingSeries& series, const ScalingFit& fit) {
  const bool is_tested = fit.lack.degrees > 0 && fit.lack.pure_degrees > 0;
  return {cells::percent(fit.deviation),
          cells::count(fit.curve.degrees),
          is_tested ? cells::number(fit.lack.p(), 2) : cells::words(""),
          held_out_cell(fit.held_out),
          cells::words(assumption(fit)),
          further_cell(series, fit)};
}

std::vector<Cell> refusal_cells(const ScalingSeries& series, const ScalingFit& fit) {
  return {cells::words(fit.refused), further_cell(series, fit)};
}

}  // namespace

Table scaling_laws_table(const MergedPoints& points, const std::vector<ScalingSeries>& all) {
  Table table = table_of_fits(
      "scaling_laws", "Laws of scaling, fitted",
      concat<Column>({estimate_columns("s or alpha", "%"), estimate_columns("delta", "%", true),
                      estimate_columns("beta", "", true), estimate_columns("limit or peak", "")}),
      points, all, law_cells, false);
  table.notes = {
      "Throughput on n: Amdahl (strong scaling) n / (1 + s (n-1)), s the part of the work that does not "
      "speed up; Gustafson (weak) s + (1-s) n; USL, the Universal Scalability Law, n / (1 + alpha (n-1) + "
      "beta n (n-1)), alpha: what waits its turn, beta: what every pair exchanges. In two levels, each rank "
      "beyond the first node costs delta more.",
      "limit or peak: of Amdahl the speed-up 1 / (s + delta) over one rank (node) that no count exceeds; of "
      "USL the number of ranks with the highest throughput.",
      "low, high: 95 % interval by a parametric bootstrap of the points around the curve; no interval: the "
      "data say that it could only be below 0. A fit holds for the counts that it saw; beyond them it is a "
      "guess.",
  };
  return table;
}

Table fit_quality_table(const MergedPoints& points, const std::vector<ScalingSeries>& all) {
  Table table = table_of_fits("fit_quality", "Laws of scaling: what the fits rest on",
                              {{"off by", "%"},
                               {"degrees", ""},
                               {"p", "", true, true, "lack of fit"},
                               {"held out", "", false, true},
                               {"assumed", "", false},
                               {"tested by ranks", "", false, true}},
                              points, all, quality_cells, false);
  table.notes = {
      "off by: the largest distance of a count's step time from the curve. degrees of freedom: times (one "
      "for each launch and count) less parameters; counts less parameters where counts are off the curve by "
      "more than launches scatter.",
      "lack of fit p: where the law holds, how often counts miss the curve by as much, as launches scatter "
      "(F test). Below 1 % a law is refused, unless launches that differ by 1 % could explain it.",
      "held out: whether the largest count is where a fit of the others predicts it (95 %).",
      "assumed, by the intervals: launches scatter alike on all counts; counts scatter alike around the law; "
      "or the law, for as many parameters as counts leave nothing to contradict it, but any of the ranks "
      "beside it would, measured in as many launches.",
  };
  return table;
}

Table refused_fits_table(const MergedPoints& points, const std::vector<ScalingSeries>& all) {
  Table table = table_of_fits("refused_fits", "Laws of scaling that were not fitted, and why",
                              {{"reason", "", false}, {"determined by ranks", "", false, true}}, points, all,
                              refusal_cells, true);
  table.notes = {
      "determined by ranks: any of these counts, measured in as many launches as the others, makes a fit "
      "possible."};
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
