// The first screen of a plan: a row for each strategy of each training setting, the message sizes of each
// collective, and why some points cannot run. Settings are named as in the overview of a report.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "analysis/frame/quantities.h"
#include "analysis/frame/rows.h"
#include "cli/plan_tables.h"

namespace shardmark {
namespace {

// The needs of a strategy: those of its point on the most ranks, which is also a row of the table `training`,
// and the point on fewer ranks that needs the most memory. The maximum of each column would describe no
// actual point.
struct Needs {
  std::string strategy;
  const Point* shown = nullptr;
  MergedPoint expected = {};      // of `shown`
  const Point* larger = nullptr;  // on fewer ranks, with the highest memory of those
  double larger_bytes = 0;

  bool is_known() const { return shown->training.strategy.name != "auto"; }  // `auto` is resolved at run time
  bool needs_more_on_fewer() const { return is_known() && larger_bytes > total_bytes(); }
  double total_bytes() const { return expected.measures.predicted_peak_bytes(); }
};

// Adds a point of the strategy, in any order. The point on the most ranks is shown. Among all others the one
// that needs the most memory is remembered.
void add(Needs& needs, const Point& point, const Expectation& expectation) {
  const auto note_larger = [&](const Point& fewer, double bytes) {
    if (bytes <= needs.larger_bytes) return;
    needs.larger = &fewer;
    needs.larger_bytes = bytes;
  };
  if (needs.shown != nullptr && point.ranks <= needs.shown->ranks)
    return note_larger(point, expectation.total_bytes());
  if (needs.shown != nullptr) note_larger(*needs.shown, needs.total_bytes());
  needs.shown = &point;
  needs.expected = as_merged(point, expectation);
}

ColumnsOf<Needs> needs_columns() {
  const auto of_quantity = [](const Shown& shown) {
    auto column = through<Needs>([](const Needs& row) -> const MergedPoint& { return row.expected; },
                                 columns_of({shown}))
                      .front();
    column.cell = [cell = std::move(column.cell)](const Needs& row) {
      return row.is_known() ? cell(row) : cells::words("");
    };
    return column;
  };
  return {{{"strategy", "", false}, [](const auto& row) { return cells::words(row.strategy); }},
          {{"ranks"},
           [](const auto& row) { return cells::count(row.shown->ranks); },
           "the most on which the suite measures this strategy. The row is that point's row of the table "
           "training; "
           "of a search for the largest batch, with a batch of 1."},
          of_quantity({"predicted_peak_bytes", "", "memory"}),
          of_quantity({"flops_per_step", "", "compute"}),
          of_quantity({"predicted_traffic_bytes", "", "traffic"}),
          of_quantity({"num_operations"}),
          {{"on fewer", "MiB"},
           [](const auto& row) {
             if (!row.needs_more_on_fewer()) return cells::words("");
             return cells::words(
                 fmt::format("{}: {}", row.larger->ranks, cells::mebibytes(row.larger_bytes).text));
           },
           "where fewer ranks need more memory than the row: how many, and how much."}};
}

OverviewTable training_answer(const std::vector<const Point*>& training, const Expectations& expected) {
  const std::vector<MergedPoint> points = merge_planned(training);
  std::map<std::string, const Expectation*> by_id;
  for (const Point* point : training) by_id.emplace(point_id(*point), &expected.at(point));
  OverviewTable answer{"Training, a row for each strategy", "training", {}, {}, {}};
  const PlotNames names(points);
  for (const RowGroup& group : row_groups(points, names, is_training, points.size())) {
    std::vector<Needs> rows;
    for (const MergedPoint* merged : group.points) {
      const std::string& strategy = names.strategy(*merged);
      auto row = std::find_if(rows.begin(), rows.end(), [&](auto& one) { return one.strategy == strategy; });
      if (row == rows.end()) row = rows.insert(row, {strategy});
      add(*row, merged->point, *by_id.at(point_id(merged->point)));
    }
    Table table = make_table(answer.key, answer.title, needs_columns(), rows);
    answer.columns = std::move(table.columns);
    answer.groups.push_back({group.setting, std::move(table.rows)});
  }
  return answer;
}

// A line for each kind of reason; reasons that differ only in numbers are one kind.
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

Overview plan_overview(const std::vector<Point>& plan, const Expectations& expected) {
  std::vector<const Point*> training, collectives;
  for (const Point& point : plan)
    if (point.impossible.empty() && point.repeat == 0)
      (point.workload == "training" ? training : collectives).push_back(&point);
  Overview overview;
  if (!training.empty()) overview.answers.push_back(training_answer(training, expected));
  if (!collectives.empty()) overview.answers.push_back(collectives_answer(collectives));
  overview.cautions = impossible_lines(plan);
  return overview;
}

}  // namespace shardmark
