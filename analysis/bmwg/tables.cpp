// Collectives (section 9) and job completion times (section 10), a row for each point.
#include "analysis/bmwg/tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/frame/training_columns.h"
#include "analysis/table/cells.h"
#include "analysis/tables/about.h"
#include "base/stats.h"

namespace shardmark {
namespace {

constexpr double kGiga = 1e9;

Cell gigabits(double bytes_per_s) { return cells::number(8 * bytes_per_s / kGiga); }

ColumnOf<BmwgCollective> busbw_column(const char* name, double share, const char* definition) {
  return {{name, "Gbit/s", true, false, "BusBW"},
          [share](const auto& row) { return gigabits(row.busbw_at(share)); },
          definition};
}

ColumnsOf<BmwgCollective> busbw_columns() {
  constexpr const char* kQuantile =
      "this share of the iterations has no larger bus bandwidth; the slow iterations are in the JCT's P99.";
  return {
      {{"mean", "Gbit/s", true, false, "BusBW"},
       [](const auto& row) { return gigabits(row.mean_busbw()); },
       "per accelerator: S x algo_factor / mean time, algo_factor 2(n-1)/n for all_reduce, (n-1)/n for the "
       "others; S the larger of a rank's two sides. Sections 9.1 to 9.3."},
      busbw_column("P50", 0.5, kQuantile),
      busbw_column("P95", 0.95, kQuantile),
      busbw_column("P99", 0.99, kQuantile),
      {{"of line rate", "%", true, true},
       [](const auto& row) { return cells::percent(row.efficiency()); },
       "BusBW efficiency: P50 / --line-rate."}};
}

ColumnsOf<BmwgCollective> iteration_columns() {
  constexpr const char* kTime = "time of an iteration on the slowest rank; median and 99th percentile.";
  return {
      {{"P50", "ms", true, false, "JCT"},
       [](const auto& row) { return cells::milliseconds(quantile(row.times_s, 0.5)); },
       kTime},
      {{"P99", "ms", true, false, "JCT"},
       [](const auto& row) { return cells::milliseconds(quantile(row.times_s, 0.99)); },
       kTime},
      {{"iterations", ""},
       [](const auto& row) { return cells::count(std::ssize(row.times_s)); },
       "of all repeats; the draft asks for 100."},
      {{"CV iterations", "%"},
       [](const auto& row) { return cells::percent(coefficient_of_variation(row.times_s)); },
       "standard deviation / mean of the iterations' times."},
      {{"CV repeats", "%", true, true},
       [](const auto& row) { return cells::percent(row.variation); },
       "of the repeats' medians: from run to run, where the draft names 5 % as typical. Section 13."},
      {{"JFI of ranks", ""},
       [](const auto& row) { return cells::number(row.rank_fairness, 4); },
       "(sum x)^2 / (n sum x^2) of the ranks' own throughputs (Jain, Chiu and Hawe, DEC TR-301, 1984); the "
       "index over links needs the switches' counters."},
      {{"S_fabric", "MB"},
       [](const auto& row) { return cells::number(row.fabric_bytes / 1e6); },
       "that a rank sends to other nodes, derived from algorithm and placement: S x what a rank sends of it "
       "x "
       "(n - ranks of a node) / (n - 1); 0 on one node. Section 3.2.5."},
      {{"algorithm (verified)", "", false},
       [](const auto& row) { return cells::words(row.algorithm); },
       "required by section 9.1. The mpi transport has one algorithm for each size, which its code shows; "
       "NCCL's is its own choice, and was not traced."}};
}

ColumnsOf<BmwgJct> jct_columns() {
  const auto of = [](double JctIteration::*part) {
    return [part](const BmwgJct& row) { return cells::milliseconds(row.mean.*part); };
  };
  const auto ratio = [](double (JctIteration::*number)() const) {
    return [number](const BmwgJct& row) { return cells::number((row.mean.*number)(), 3); };
  };
  return {
      {{"C", "ms"},
       of(&JctIteration::compute_s),
       "computing alone; all times are means over the iterations."},
      {{"communication", "ms"}, of(&JctIteration::communication_s), "alone."},
      {{"sequential", "ms", true, true, "JCT"},
       of(&JctIteration::sequential_s),
       "computing, then communication: the draft's synthetic iteration. Section 10.1."},
      {{"overlapped", "ms", true, false, "JCT"}, of(&JctIteration::overlapped_s), "both at once."},
      {{"roofline", "ms", true, true},
       [](const auto& row) { return cells::milliseconds(row.mean.roofline_s()); },
       "C + 8 x S x algo_factor / B_acc, over the operations of an iteration; B_acc is --line-rate."},
      {{"sequential", "", true, true, "JCT ratio"},
       ratio(&JctIteration::sequential_ratio),
       "JCT / roofline."},
      {{"overlapped", "", true, true, "JCT ratio"},
       ratio(&JctIteration::overlapped_ratio),
       "JCT / roofline."},
      {{"overlap fraction", "", true, true},
       ratio(&JctIteration::overlap_fraction),
       "1 - (overlapped JCT - C) / (8 x S x algo_factor / B_acc): 1 all communication hidden; below 0 where "
       "it "
       "takes longer than at line rate."},
      {{"hidden", ""},
       ratio(&JctIteration::hidden),
       "1 - (overlapped JCT - C) / communication: the same against what was measured, without a line rate."},
      {{"overhead", "ms"},
       [](const auto& row) { return cells::milliseconds(row.mean.left_s()); },
       "Effective_Comm_Overhead: overlapped JCT - C."},
      {{"iterations", ""},
       [](const auto& row) { return cells::count(row.iterations); },
       "the draft asks for 1,000."}};
}

ColumnsOf<BmwgMetric> metric_columns() {
  const auto words = [](std::string BmwgMetric::*member) {
    return [member](const BmwgMetric& row) { return cells::words(row.*member); };
  };
  return {
      {{"section", "", false}, words(&BmwgMetric::section), "of the draft."},
      {{"metric", "", false}, words(&BmwgMetric::name)},
      {{"value", ""}, [](const auto& row) { return cells::number(row.value); }},
      {{"unit", "", false}, words(&BmwgMetric::unit)},
      {{"of", "", false},
       words(&BmwgMetric::of),
       "the point on most ranks with the largest message, or the worst of all, as it says."},
      {{"samples", ""},
       [](const auto& row) {
         return row.samples == 0 ? Cell{"", nullptr} : cells::count(row.samples);
       },
       "iterations, rounds or intervals that the value was made from."},
      {{"why not", "", false, false, "", Starts::group}, words(&BmwgMetric::why_not), "what a value needs."}};
}

ColumnsOf<BmwgFormLine> form_columns() {
  return {{{"part", "", false, false, "", Starts::group},
           [](const auto& row) { return cells::words(row.part); },
           "of a report, by section 13 of the draft."},
          {{"item", "", false}, [](const auto& row) { return cells::words(row.item); }},
          {{"said", "", false},
           [](const auto& row) {
             return row.said.empty() ? Cell{"not stated", nullptr} : cells::words(row.said);
           },
           "by the studies; what they do not know is to be added by whoever reports."}};
}

}  // namespace

Table bmwg_collectives_table(const std::vector<BmwgCollective>& rows) {
  return make_table("bmwg_collectives", "IETF draft, section 9: bus bandwidth of collectives",
                    join(via(&BmwgCollective::merged, about_columns()), busbw_columns(), iteration_columns()),
                    rows);
}

Table bmwg_jct_table(const std::vector<BmwgJct>& rows) {
  return make_table(
      "bmwg_jct", "IETF draft, section 10: job completion time of an iteration",
      join(via(&BmwgJct::merged, join(about_columns(), ColumnsOf<MergedPoint>{beside_column()})),
           jct_columns()),
      rows);
}

Table bmwg_table(const std::vector<BmwgMetric>& rows) {
  Table table =
      make_table("bmwg", "IETF draft on fabrics for AI training: its metrics", metric_columns(), rows);
  if (!rows.empty())
    table.notes = {
        fmt::format("By {}.", kBmwgRevision),
        "Observation point of every value: the ranks' software, an endpoint boundary, not the fabric's. "
        "The draft sets no limits, and excludes InfiniBand and links within a node."};
  return table;
}

Table bmwg_form_table(const std::vector<BmwgFormLine>& rows) {
  return make_table("bmwg_form", "IETF draft, section 13: the report's form", form_columns(), rows);
}

namespace {

bool is_of_suite(const StudyData& study) {
  return ("\n" + study.environment.suite_text).find("\nname: bmwg\n") != std::string::npos;
}

}  // namespace

std::vector<Table> bmwg_tables(const std::vector<StudyData>& studies, const std::vector<MergedPoint>& points,
                               const BmwgQuery& query) {
  if (!query.is_named && !(query.line_bytes_per_s > 0) &&
      std::none_of(studies.begin(), studies.end(), is_of_suite))
    return {bmwg_table({}), bmwg_collectives_table({}), bmwg_jct_table({}), bmwg_form_table({})};
  return {bmwg_table(bmwg_metrics(points, query)), bmwg_collectives_table(bmwg_collectives(points, query)),
          bmwg_jct_table(bmwg_jcts(points, query)), bmwg_form_table(bmwg_form(studies, points, query))};
}

}  // namespace shardmark
