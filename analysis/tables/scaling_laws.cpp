// The laws of scaling that were fitted, those that were refused and why, and where efficiency falls below 80
// %.
#include <fmt/format.h>

#include <cmath>

#include "analysis/frame/training_columns.h"
#include "analysis/stats/scaling.h"
#include "analysis/table/axis_columns.h"
#include "analysis/table/cells.h"
#include "analysis/tables/tables.h"
#include "base/units.h"

namespace shardmark {
namespace {

// A series, and a law fitted to it where the table is about those.
struct FitRow {
  const ScalingSeries* series;
  const ScalingFit* fit;
  const MergedPoint* merged;  // the first of the series
};

// value, low and high under one heading. fold: left out where no row has one.
template <class CellOfNumber>
ColumnsOf<FitRow> estimate_columns(const Column& head, Estimate (*estimate)(const FitRow&), CellOfNumber cell,
                                   const std::string& value, const std::string& interval) {
  ColumnsOf<FitRow> columns;
  for (const auto& [name, part] :
       {std::pair("value", &Estimate::value), {"low", &Estimate::low}, {"high", &Estimate::high}}) {
    Column column = head;
    column.name = name;
    columns.push_back({column, [=, part = part](const FitRow& row) { return cell(row, estimate(row).*part); },
                       part == &Estimate::value ? value : interval});
  }
  return columns;
}

Cell percent_cell(const FitRow&, double value) { return cells::percent(value, 2); }

std::string counts_text(const ScalingSeries& series) {
  return fmt::format("{}-{}", series.points.front().merged->point.ranks,
                     series.points.back().merged->point.ranks);
}

std::string beyond_text(const ScalingSeries& series) {
  const auto most = static_cast<double>(series.points.back().merged->point.ranks);
  return "> " + format_count(Crossing::kReach * most);
}

// Which series a row is about.
ColumnsOf<FitRow> series_columns(const TrainingColumns& labels) {
  return join(
      via(&FitRow::merged, labels.family()),
      ColumnsOf<FitRow>{
          {{"scaling", "", false, true, "", Starts::group},
           [](const auto& row) { return cells::words(std::string(to_text(row.series->scaling))); }},
          {choice_column("strategy"), [&](const auto& row) { return labels.strategy(*row.merged); }},
          {{"batch", "", true, true}, [](const auto& row) { return cells::count(row.series->fixed_batch); }},
          {{"over", "", false, true}, [](const auto& row) { return cells::words(unit_text(*row.series)); }},
          {{"ranks", "", false}, [](const auto& row) { return cells::words(counts_text(*row.series)); }}});
}

// "64 or 2"
Cell further_cell(const FitRow& row) {
  std::vector<std::string> ranks;
  ranks.reserve(row.fit->further.size());
  for (const double units : row.fit->further)
    ranks.push_back(format_count(units * static_cast<double>(row.series->ranks_per_unit)));
  return cells::words(fmt::format("{}", fmt::join(ranks, " or ")));
}

const Estimate& parameter(const ScalingFit& fit, std::string_view symbol) {
  static const Estimate kAbsent;
  for (const FittedParameter& one : fit.parameters)
    if (one.symbol == symbol) return one.estimate;
  return kAbsent;
}

// The speed-up's limit; for the USL, which may have a peak instead, the ranks at which it lies, not the
// units.
Estimate limit_or_peak(const FitRow& row) {
  const ScalingFit& fit = *row.fit;
  if (fit.law != ScalingLaw::usl) return fit.limit;
  const auto ranks = static_cast<double>(row.series->ranks_per_unit);
  return {ranks * fit.peak.value, ranks * fit.peak.low, ranks * fit.peak.high};
}

// What the intervals take for granted.
std::string assumption(const ScalingFit& fit) {
  if (fit.lack.degrees == 0) return "the law, untested";
  return fit.from_launches ? "launches scatter alike" : "counts scatter alike";
}

Cell held_out_cell(const FitRow& row) {
  const Extrapolation& largest = row.fit->held_out;
  const auto& [value, low, high] = largest.predicted_s;
  if (std::isnan(value)) return cells::words("");
  const bool inside = low <= largest.measured_s && largest.measured_s <= high;
  return {inside ? "inside" : "outside", inside};
}

// From 1e-1 down to 1e-9, and worth the same digits everywhere.
Cell beta_cell(const FitRow&, double beta) {
  return std::isnan(beta) ? cells::words("") : Cell{fmt::format("{:.3g}", beta), beta};
}

Cell limit_cell(const FitRow&, double limit) {
  return std::isinf(limit) ? Cell{"none", "none"} : cells::number(limit, 3);
}

Cell crossing_cell(const FitRow& row, double ranks) {
  const std::string beyond = beyond_text(*row.series);
  return std::isinf(ranks) ? Cell{beyond, beyond} : cells::number(ranks, 3);
}

Cell lack_cell(const FitRow& row) {
  const LackOfFit& lack = row.fit->lack;
  return lack.degrees > 0 && lack.pure_degrees > 0 ? cells::number(lack.p(), 2) : cells::words("");
}

ColumnsOf<FitRow> law_columns() {
  const std::string interval =
      "95 % interval by a parametric bootstrap of the points around the curve; no interval: by the data, it "
      "could only be below 0. A fit holds for the measured counts; beyond them it is an extrapolation.";
  return join(
      estimate_columns(
          {"", "%", true, false, "s or alpha"},
          [](const FitRow& row) {
            return row.fit->parameters.empty() ? Estimate{} : row.fit->parameters.front().estimate;
          },
          percent_cell,
          "for Amdahl and Gustafson s, the part of the work that does not speed up; for USL alpha, "
          "contention.",
          interval),
      estimate_columns(
          {"", "%", true, true, "delta"}, [](const FitRow& row) { return parameter(*row.fit, "delta"); },
          percent_cell, "extra cost of each rank beyond the first node, in fits with two levels.", interval),
      estimate_columns(
          {"", "", true, true, "beta"}, [](const FitRow& row) { return parameter(*row.fit, "beta"); },
          beta_cell, "for USL, coherency: the cost of exchanges between every pair.", interval),
      estimate_columns({"", "", true, false, "limit or peak"}, limit_or_peak, limit_cell,
                       "for Amdahl, the speed-up 1 / (s + delta) over one rank (node) that no count exceeds; "
                       "for USL, the number of ranks with the highest throughput.",
                       interval));
}

ColumnsOf<FitRow> quality_columns() {
  return {
      {{"largest error", "%"},
       [](const auto& row) { return cells::percent(row.fit->deviation); },
       "the largest distance of a count's step time from the curve."},
      {{"degrees", ""},
       [](const auto& row) { return cells::count(row.fit->curve.degrees); },
       "of freedom: times (one for each launch and count) less parameters; counts less parameters where "
       "counts are off the curve by more than launches scatter."},
      {{"p", "", true, true, "lack of fit"},
       lack_cell,
       "if the law holds, how often counts would miss the curve by this much, given the scatter of launches "
       "(F test). Below 1 % a law is rejected, unless launches that differ by 1 % could explain it."},
      {{"held out", "", false, true},
       held_out_cell,
       "whether the largest count is where a fit of the others predicts it (95 %)."},
      {{"assumed", "", false},
       [](const auto& row) { return cells::words(assumption(*row.fit)); },
       "by the intervals: launches scatter alike on all counts; counts scatter alike around the law; or the "
       "law itself: with as many parameters as counts it cannot be tested, but measuring any of the ranks "
       "beside it, in as many launches, would test it."},
      {{"tested by ranks", "", false, true}, further_cell}};
}

ColumnsOf<FitRow> refusal_columns() {
  return {{{"not fitted, because", "", false, true},
           [](const auto& row) { return cells::words(row.fit->refused); }},
          {{"determined by ranks", "", false, true},
           [](const auto& row) { return row.fit->refused.empty() ? cells::words("") : further_cell(row); },
           "any of these counts, measured in as many launches as the others, makes a fit possible."}};
}

ColumnsOf<FitRow> limit_columns() {
  const std::string definition =
      "from measured: interpolated linearly between the counts low and high; from a law: its curve beyond "
      "the measured counts, with a 95 % interval, up to 8 times the largest count (>). -: no count without "
      "warnings is below 80 %, and no law was fitted.";
  return join(ColumnsOf<FitRow>{{{"at the most", "%", true, false, "efficiency"},
                                 [](const auto& row) {
                                   return cells::percent(row.series->points.back().efficiency.value);
                                 },
                                 "on the largest number of ranks measured."}},
              estimate_columns(
                  {"", "", true, false, "falls below 80 % at ranks"},
                  [](const FitRow& row) { return row.series->below_80.ranks; }, crossing_cell, definition,
                  definition),
              ColumnsOf<FitRow>{{{"from", "", false},
                                 [](const auto& row) { return cells::words(row.series->below_80.from); }}});
}

Table table_of_fits(const char* key, const char* title, ColumnsOf<FitRow> columns, const MergedPoints& points,
                    const std::vector<ScalingSeries>& all, bool with_refused) {
  std::vector<FitRow> rows;
  for (const ScalingSeries& series : all)
    for (const ScalingFit& fit : series.fits)
      if (fit.refused.empty() || with_refused) rows.push_back({&series, &fit, series.points.front().merged});
  const TrainingColumns labels(points);
  ColumnOf<FitRow> law = {{"law", "", false},
                          [](const auto& row) { return cells::words(to_text(*row.fit)); }};
  return make_table(key, title, join(series_columns(labels), ColumnsOf<FitRow>{law}, std::move(columns)),
                    rows);
}

}  // namespace

Table scaling_laws_table(const MergedPoints& points, const std::vector<ScalingSeries>& all) {
  Table table = table_of_fits("scaling_laws", "Scaling laws: fitted, or why not",
                              join(law_columns(), refusal_columns()), points, all, /*with_refused=*/true);
  table.explanations.emplace(
      table.explanations.begin(),
      "Throughput on n: Amdahl (strong scaling) n / (1 + s (n-1)); Gustafson (weak) s + (1-s) n; USL, the "
      "Universal Scalability Law, n / (1 + alpha (n-1) + beta n (n-1)). In two levels, each rank beyond the "
      "first node costs delta more.");
  return table;
}

Table fit_quality_table(const MergedPoints& points, const std::vector<ScalingSeries>& all) {
  return table_of_fits("scaling_laws.quality", "Scaling laws: what the fits are based on", quality_columns(),
                       points, all, /*with_refused=*/false);
}

Table efficiency_limits_table(const MergedPoints& points, const std::vector<ScalingSeries>& all) {
  std::vector<FitRow> rows;
  rows.reserve(all.size());
  for (const ScalingSeries& series : all) rows.push_back({&series, nullptr, series.points.front().merged});
  const TrainingColumns labels(points);
  return make_table("scaling.limits", "Efficiency: where it falls below 80 %",
                    join(series_columns(labels), limit_columns()), rows);
}

}  // namespace shardmark
