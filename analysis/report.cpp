// The order of the tables. Those of one name follow each other.
#include "analysis/report.h"

#include "analysis/findings/findings.h"
#include "analysis/predict/collective_settings.h"
#include "analysis/predict/gap.h"
#include "analysis/predict/tables.h"
#include "analysis/reference/tables.h"
#include "analysis/stats/interconnects.h"
#include "analysis/stats/sustained.h"
#include "analysis/tables/names.h"
#include "analysis/tables/tables.h"

namespace shardmark {

ReportData::ReportData(const std::vector<StudyData>& all_studies, const References& references)
    : studies(all_studies),
      points(merge_repeats(all_studies)),
      unfinished(unfinished_runs(all_studies)),
      scaling(scaling_series(points)),
      matches(points, references),
      rates(rated_operations(points)),
      nodes(judge_nodes(all_studies)) {}

namespace {

// Those without rows, too.
void visit_all(const ReportData& data, const ReportInputs& inputs, const std::function<void(Table&&)>& add) {
  const auto& [studies, points, unfinished, scaling, matches, rates, nodes] = data;
  const auto add_all = [&](std::vector<Table>&& tables) {
    for (Table& table : tables) add(std::move(table));
  };
  add(studies_table(studies));
  add(nodes_table(nodes));
  add(reference_table(matches.points));
  add(rates_table(rates));
  add(strategies_table(points, inputs.price_per_gpu_hour));
  for (const auto& make : {accumulation_table, optimizations_table}) add(make(points));
  add(measured_goodput_table(studies, points, inputs.failures, inputs.price_per_gpu_hour));
  for (const auto& make : {layouts_table, sequences_table, settings_table, together_table}) add(make(points));
  add_all(sustained_tables(points, unfinished));
  const std::vector<Predictor> predictors = make_predictors(points);
  for (const auto& make : {phases_table, communication_table}) add(make(points));
  add(gap_table(points, predictors));
  add(start_table(points));
  for (const Scaling one : {Scaling::weak, Scaling::strong}) add(scaling_table(one, points, scaling));
  for (const auto& make : {efficiency_limits_table, scaling_laws_table, fit_quality_table})
    add(make(points, scaling));
  add(interconnects_table(points, inputs.links));
  add(network_table(points));
  add(held_out_table(points, predictors));
  add(memory_table(points));
  add(largest_table(studies, points));
  add(experts_table(points));
  add(checkpoints_table(points));
  add_all(collective_tables(points));
  const std::vector<CollectiveSetting> settings = collective_settings(points);
  add(collective_fits_table(settings));
  add(held_out_collectives_table(settings));
  add(runs_table(studies));
  add(problems_table(studies, points, unfinished, scaling));
}

}  // namespace

void visit_tables(const ReportData& data, const ReportInputs& inputs,
                  const std::function<void(Table&&)>& visit) {
  visit_all(data, inputs, [&](Table&& table) {
    if (!table.rows.empty()) visit(std::move(table));
  });
}

// A report of no studies makes every table, empty, and so knows all names without a list of its own.
std::vector<std::string> report_table_names() {
  std::vector<std::string> names;
  const std::vector<StudyData> none;
  visit_all(ReportData(none), {}, [&](Table&& table) {
    const std::string name(name_of_table(table.key));
    if (names.empty() || names.back() != name) names.push_back(name);
  });
  return names;
}

std::vector<Table> make_report(const std::vector<StudyData>& studies, const ReportInputs& inputs) {
  std::vector<Table> tables;
  visit_tables(ReportData(studies, inputs.references), inputs,
               [&](Table&& table) { tables.push_back(std::move(table)); });
  return tables;
}

}  // namespace shardmark
