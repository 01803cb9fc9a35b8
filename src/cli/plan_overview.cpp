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

// What the points of a row need at most.
struct Needs {
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
  needs.memory_bytes = std::fmax(needs.memory_bytes, total_bytes(e));
  needs.flops = std::fmax(needs.flops, e.flops_per_step);
  needs.traffic_bytes = std::fmax(needs.traffic_bytes, e.cost.traffic_bytes);
  needs.operations = std::max(needs.operations, e.cost.num_operations);
}

Cell ranks_cell(int64_t least, int64_t most) {
  return least == most ? cells::count(most) : cells::words(fmt::format("{}-{}", least, most));
}

OverviewTable training_answer(const std::vector<MergedPoint>& points) {
  OverviewTable table{
      "Training, a row for each strategy",
      "training",
      {{.name = "strategy", .numeric = false},
       {.name = "ranks"},
       {.name = "points"},
       {.name = "memory",
        .unit = "MiB",
        .definition =
            "peak on the rank that needs most, activations included. This and the next columns describe the "
            "row's largest point; of a search for the largest batch, a batch of 1."},
       {.name = "compute", .unit = "GFLOP", .definition = "per rank and step."},
       {.name = "traffic",
        .unit = "MiB",
        .definition = "per rank and step: payload x ring factor, mean over ranks."},
       {.name = "operations", .definition = "per rank and step."}},
      {}};
  const PlotNames names(points);
  for (const RowGroup& group : row_groups(points, names, is_training, points.size())) {
    std::vector<std::pair<std::string, Needs>> rows;
    for (const MergedPoint* merged : group.points) {
      const std::string& strategy = names.strategy(*merged);
      auto row = std::find_if(rows.begin(), rows.end(), [&](auto& one) { return one.first == strategy; });
      if (row == rows.end()) row = rows.insert(row, {strategy, {}});
      add(row->second, merged->point);
    }
    OverviewGroup shown{group.setting, {}};
    for (const auto& [strategy, needs] : rows)
      shown.rows.push_back({cells::words(strategy), ranks_cell(needs.least_ranks, needs.most_ranks),
                            cells::count(needs.points), cells::mebibytes(needs.memory_bytes),
                            cells::number(needs.flops / 1e9), cells::mebibytes(needs.traffic_bytes),
                            needs.operations == 0 ? cells::words("") : cells::count(needs.operations)});
    table.groups.push_back(std::move(shown));
  }
  return table;
}

// Of the table of collectives these columns.
OverviewTable collectives_answer(const Table& collectives) {
  constexpr std::string_view kShown[] = {"operation", "ranks", "sizes", "smallest", "largest", "traffic"};
  OverviewTable answer{"Collectives", collectives.key, {}, {{}}};
  std::vector<std::vector<Cell>>& rows = answer.groups.front().rows;
  rows.resize(collectives.rows.size());
  for (const std::string_view name : kShown)
    for (size_t c = 0; c < collectives.columns.size(); ++c)
      if (collectives.columns[c].name == name) {
        answer.columns.push_back(collectives.columns[c]);
        for (size_t row = 0; row < rows.size(); ++row) rows[row].push_back(collectives.rows[row][c]);
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

Overview plan_overview(const std::vector<Point>& plan, const std::vector<Table>& tables) {
  Overview overview;
  StudyData planned;
  for (const Point& point : plan)
    if (point.impossible.empty() && point.workload == "training")
      planned.records.emplace_back().point = point;
  const std::vector<StudyData> studies = {std::move(planned)};
  if (!studies.front().records.empty()) overview.answers.push_back(training_answer(merge_repeats(studies)));
  for (const Table& table : tables)
    if (table.key == "collectives") overview.answers.push_back(collectives_answer(table));
  overview.cautions = impossible_lines(plan);
  return overview;
}

}  // namespace shardmark
