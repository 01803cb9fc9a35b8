// The order of the tables.
#include "analysis/report.h"

#include "analysis/predict/collective_settings.h"
#include "analysis/predict/gap.h"
#include "analysis/predict/tables.h"
#include "analysis/quality/findings.h"
#include "analysis/quality/sustained.h"
#include "analysis/scaling/interconnects.h"
#include "analysis/tables/tables.h"

namespace shardmark {

std::vector<Table> make_report(const std::vector<StudyData>& studies, const ReportInputs& inputs) {
  const MergedPoints points = merge_repeats(studies);
  const MergedPoints unfinished = unfinished_runs(studies);
  std::vector<Table> tables = {studies_table(studies)};
  tables.push_back(strategies_table(points));
  tables.push_back(costs_table(points, inputs.price_per_gpu_hour));
  for (const auto& make : {phases_table, optimizations_table, accumulation_table})
    tables.push_back(make(points));
  for (Table& table : sustained_tables(points, unfinished)) tables.push_back(std::move(table));
  const std::vector<Predictor> predictors = make_predictors(points);
  tables.push_back(gap_table(points, predictors));
  const std::vector<ScalingSeries> scaling = scaling_series(points);
  for (const auto& make : {weak_scaling_table, strong_scaling_table, efficiency_limits_table,
                           scaling_laws_table, fit_quality_table, refused_fits_table})
    tables.push_back(make(points, scaling));
  tables.push_back(interconnects_table(points, inputs.links));
  tables.push_back(held_out_table(points, predictors));
  for (const auto& make : {memory_table, shares_table, traffic_table, communication_table})
    tables.push_back(make(points));
  tables.push_back(largest_table(studies, points));
  for (Table& table : collective_tables(points)) tables.push_back(std::move(table));
  const std::vector<CollectiveSetting> settings = collective_settings(points);
  tables.push_back(collective_fits_table(settings));
  tables.push_back(held_out_collectives_table(settings));
  tables.push_back(findings_table(points, unfinished));
  tables.push_back(runs_table(studies));
  tables.push_back(missing_table(studies, points, scaling));
  tables.push_back(not_ok_table(studies));
  std::erase_if(tables, [](const Table& table) { return table.rows.empty(); });
  return tables;
}

}  // namespace shardmark
