// The first screen of a plan: of each training setting a row for each strategy, of each collective its
// messages, and why some points cannot run. Settings are named as in the overview of a report.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "analysis/plots/rows.h"
#include "cli/plan_tables.h"

namespace shardmark {
namespace {

// What the points of a strategy need at most.
struct Needs {
  std::string strategy;
  int64_t points = 0, least_ranks = 0, most_ranks = 0;
  double memory_bytes = NAN, flops = NAN, traffic_bytes = NAN;
  int64_t operations = 0;
};

void add(Needs& needs, const Point& point) {
  ++needs.points;
  needs.least_ranks = needs.points == 1 ? point.ranks : std::min(needs.least_ranks, point.ranks);
  needs.most_ranks = std::max(needs.most_ranks, point.ranks);
  if (point.training.strategy.name == "auto") return;  // chosen when it runs
  const Expectation e = expect(point);
  needs.memory_bytes = std::fmax(needs.memory_bytes, e.total_bytes());
  needs.flops = std::fmax(needs.flops, e.flops_per_step);
  needs.traffic_bytes = std::fmax(needs.traffic_bytes, e.cost.traffic_bytes);
  needs.operations = std::max(needs.operations, e.cost.num_operations);
}

ColumnsOf<Needs> needs_columns() {
  return {
      {{"strategy", "", false}, [](const auto& row) { return cells::words(row.strategy); }},
      {{"ranks"},
       [](const auto& row) {
         return row.least_ranks == row.most_ranks
                    ? cells::count(row.most_ranks)
                    : cells::words(fmt::format("{}-{}", row.least_ranks, row.most_ranks));
       }},
      {{"points"}, [](const auto& row) { return cells::count(row.points); }},
      {{"memory", "MiB"},
       [](const auto& row) { return cells::mebibytes(row.memory_bytes); },
       "peak on the rank that needs most, activations included. This and the next columns describe the "
       "row's largest point; of a search for the largest batch, a batch of 1."},
      {{"compute", "GFLOP"},
       [](const auto& row) { return cells::number(row.flops / 1e9); },
       "per rank and step."},
      {{"traffic", "MiB"},
       [](const auto& row) { return cells::mebibytes(row.traffic_bytes); },
       "per rank and step: payload x ring factor, mean over ranks."},
      {{"operations"},
       [](const auto& row) { return row.operations == 0 ? cells::words("") : cells::count(row.operations); },
       "per rank and step."}};
}

OverviewTable training_answer(const std::vector<MergedPoint>& points) {
  OverviewTable answer{"Training, a row for each strategy", "training", {}, {}, {}};
  const PlotNames names(points);
  for (const RowGroup& group : row_groups(points, names, is_training, points.size())) {
    std::vector<Needs> rows;
    for (const MergedPoint* merged : group.points) {
      const std::string& strategy = names.strategy(*merged);
      auto row = std::find_if(rows.begin(), rows.end(), [&](auto& one) { return one.strategy == strategy; });
      if (row == rows.end()) row = rows.insert(row, {strategy});
      add(*row, merged->point);
    }
    Table table = make_table(answer.key, answer.title, needs_columns(), rows);
    answer.columns = std::move(table.columns);
    answer.groups.push_back({group.setting, std::move(table.rows)});
  }
  return answer;
}

// A line for each kind of reason: reasons that differ in their numbers are one.
std::vector<std::string> impossible_lines(const std::vector<Point>& plan) {
  std::map<std::string, std::vector<const Point*>> reasons;
  for (const Point& point : plan) {
    if (point.impossible.empty()) continue;
    std::string kind = point.impossible;
    std::erase_if(kind, [](unsigned char c) { return std::isdigit(c) != 0 || c == '.'; });
    reasons[kind].push_back(&point);
  }
  std::vector<std::string> lines;
  for (const auto& [kind, points] : reasons)
    lines.push_back(fmt::format("cannot run: {} point{}, such as {}: {}", points.size(),
                                points.size() == 1 ? "" : "s", impossible_name(*points.front()),
                                points.front()->impossible));
  return lines;
}

}  // namespace

Overview plan_overview(const std::vector<Point>& plan) {
  std::vector<const Point*> training, collectives;
  for (const Point& point : plan)
    if (point.impossible.empty() && point.repeat == 0)
      (point.workload == "training" ? training : collectives).push_back(&point);
  Overview overview;
  if (!training.empty()) overview.answers.push_back(training_answer(merge_planned(training)));
  if (!collectives.empty()) overview.answers.push_back(collectives_answer(collectives));
  overview.cautions = impossible_lines(plan);
  return overview;
}

}  // namespace shardmark
