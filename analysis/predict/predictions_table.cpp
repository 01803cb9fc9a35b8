// Predicted steps, and the best of them.
#include <cmath>
#include <map>

#include "analysis/cells.h"
#include "analysis/known.h"
#include "analysis/predict/tables.h"
#include "analysis/training_columns.h"

namespace shardmark {
namespace {

std::string strategy_text(const Choice& strategy) {
  return to_text(without_defaults(strategy, known_options(strategy)));
}

int64_t nodes_of(const PredictedPoint& one) {
  return (one.prediction.point.ranks + one.cluster.ranks_per_node - 1) / one.cluster.ranks_per_node;
}

double samples_per_s(const PredictedPoint& one) {
  return static_cast<double>(one.prediction.point.global_batch()) / one.prediction.step_s.value;
}

double efficiency(const PredictedPoint& one, const PredictQuery& query) {
  const double ranks = query.global_batch > 0 ? static_cast<double>(one.prediction.point.ranks) : 1;
  return one.one_rank_s / (ranks * one.prediction.step_s.value);
}

double cost_of_million(const PredictedPoint& one, const PredictQuery& query) {
  return query.price_per_gpu_hour / 3600 * static_cast<double>(one.prediction.point.ranks) * 1e6 /
         samples_per_s(one);
}

std::vector<Column> result_columns() {
  return {{"step", "ms"},
          {"low", "ms", true, true},
          {"high", "ms", true, true},
          {"efficiency", "%"},
          {"exposed", "% of step"},
          {"throughput", "samples/s"},
          {"memory", "MiB per rank", true, true},
          {"fits", "", false, true},
          {"cost of 10^6", "samples", true, true}};
}

std::vector<Cell> result_cells(const PredictedPoint& one, const PredictQuery& query) {
  const Prediction& p = one.prediction;
  const bool any_limit = !std::isnan(query.memory_bytes);
  return {cells::milliseconds(p.step_s.value),
          cells::milliseconds(p.step_s.low),
          cells::milliseconds(p.step_s.high),
          cells::percent(efficiency(one, query)),
          cells::percent(p.parts.exposed_s / p.parts.step_s),
          cells::number(samples_per_s(one)),
          cells::mebibytes(p.memory_bytes),
          any_limit ? cells::yes_no(one.fits) : cells::words(""),
          cells::number(cost_of_million(one, query))};
}

std::vector<Cell> where_cells(const PredictedPoint& one) {
  return {cells::count(one.prediction.point.ranks), cells::count(nodes_of(one))};
}

void add_unknown_notes(Table& table, const std::vector<PredictedPoint>& predicted) {
  std::map<std::string, std::pair<int, std::string>> reasons;
  for (const PredictedPoint& one : predicted)
    if (const auto& why = one.prediction.unknown; !why.empty()) {
      auto& [count, first] = reasons[why];
      if (count++ == 0)
        first = strategy_text(one.prediction.point.training.strategy) + " on " +
                std::to_string(one.prediction.point.ranks) + " ranks";
    }
  for (const auto& [why, where] : reasons)
    table.notes.push_back("Left out: " + std::to_string(where.first) + " rows, the first " + where.second +
                          ": " + why + ".");
}

std::vector<std::string> notes_of(const std::vector<PredictedPoint>& predicted, const PredictQuery& query) {
  std::vector<std::string> notes = {
      "Nothing here was measured: the study's collectives and the computing of its training points, put "
      "together by an event simulation (analysis/README.md).",
      query.global_batch > 0
          ? "efficiency: predicted step on one rank with the whole global batch / (ranks x step)."
          : "efficiency: predicted step of the strategy on one rank / step, the same batch per rank.",
      "low, high: 95 % of what other draws of latency and bandwidth, and the errors of predicting measured "
      "points, make of it. Beyond what was measured (other networks, many more ranks) they cannot hold what "
      "no "
      "small run shows: congestion, stragglers, failures.",
  };
  if (query.ranks_per_node == 0)
    notes.push_back(
        "nodes: of as many ranks as lay on one node where most of the study did; --ranks-per-node changes "
        "it.");
  if (query.network && !predicted.empty())
    notes.push_back("across nodes: " + query.network->name + ", one link for each rank.");
  if (query.node_link && !predicted.empty()) notes.push_back("within a node: " + query.node_link->name + ".");
  return notes;
}

}  // namespace

Table predictions_table(const std::vector<MergedPoint>& points, const std::vector<PredictedPoint>& predicted,
                        const PredictQuery& query) {
  Table table{"predictions", "Predicted steps", notes_of(predicted, query), {}, {}};
  table.columns = concat<Column>(
      {TrainingColumns::family_columns(),
       {{"batch", "per rank", true, true}, {"strategy", "", false}, {"ranks", ""}, {"nodes", "", true, true}},
       result_columns()});
  table.num_group_columns = TrainingColumns::kNumFamilyColumns + 2;
  table.num_section_columns = TrainingColumns::kNumSectionColumns;
  const TrainingColumns labels(points);
  for (const PredictedPoint& one : predicted) {
    if (!one.prediction.unknown.empty()) continue;
    const TrainingPoint& t = one.prediction.point.training;
    table.rows.push_back(concat<Cell>({labels.family_cells(*one.like),
                                       {cells::count(t.batch_size), cells::words(strategy_text(t.strategy))},
                                       where_cells(one),
                                       result_cells(one, query)}));
  }
  add_unknown_notes(table, predicted);
  return table;
}

Table best_table(const std::vector<MergedPoint>& points, const std::vector<PredictedPoint>& predicted,
                 const PredictQuery& query) {
  Table table{
      "best",
      "Highest predicted throughput",
      {"Of each number of ranks the strategy and batch of the highest throughput, of those that fit."},
      {},
      {}};
  table.columns = concat<Column>(
      {TrainingColumns::family_columns(),
       {{"ranks", ""}, {"nodes", "", true, true}, {"strategy", "", false}, {"batch", "per rank"}},
       result_columns()});
  table.num_group_columns = TrainingColumns::kNumFamilyColumns;
  table.num_section_columns = TrainingColumns::kNumSectionColumns;
  std::map<std::pair<const MergedPoint*, int64_t>, const PredictedPoint*> best;
  for (const PredictedPoint& one : predicted) {
    if (!one.prediction.unknown.empty() || !one.fits) continue;
    const PredictedPoint*& known = best[{one.like, one.prediction.point.ranks}];
    if (known == nullptr || samples_per_s(one) > samples_per_s(*known)) known = &one;
  }
  const TrainingColumns labels(points);
  for (const auto& [key, one] : best) {
    const TrainingPoint& t = one->prediction.point.training;
    table.rows.push_back(concat<Cell>({labels.family_cells(*one->like),
                                       where_cells(*one),
                                       {cells::words(strategy_text(t.strategy)), cells::count(t.batch_size)},
                                       result_cells(*one, query)}));
  }
  return table;
}

}  // namespace shardmark
