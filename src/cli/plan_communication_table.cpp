// The communication of a step in each of its phases, by the strategies' formulas.
#include <set>

#include "analysis/frame/phase_traffic.h"
#include "analysis/table/axis_columns.h"
#include "cli/plan_tables.h"

namespace shardmark {
namespace {

struct TrafficRow {
  const Point* point;
  strategies::StepTraffic traffic;
};

// The settings that affect what a step communicates, with the strategy and the ranks. The size of gradients
// and parameters does not depend on the batch; what ranks of one copy of the model exchange grows with it.
ColumnsOf<Point> moving_columns() {
  const ColumnsOf<Point> strategy = {
      {{"batch", "per rank", true, true},
       [](const Point& point) { return point.ranks_per_copy() > 1 ? batch_cell(point) : cells::words(""); }},
      {choice_column("strategy"), [](const Point& point) { return strategy_cell(point.training); }},
      {{"ranks", ""}, [](const Point& point) { return cells::count(point.ranks); }}};
  return join(starting(Starts::section,
                       axis_columns(with_layout_axes({"model", "precision", "reduce_dtype", "clip_norm",
                                                      "checkpointing", "accumulation"}))),
              strategy);
}

}  // namespace

// Points with the same communication share a row.
Table communication_table(const std::vector<const Point*>& points, const Expectations& expected) {
  const ColumnsOf<Point> settings = moving_columns();
  std::vector<TrafficRow> rows;
  std::set<std::string> known;  // the settings of a row
  for (const Point* point : points) {
    std::string text;
    for (const ColumnOf<Point>& setting : settings) text += setting.cell(*point).text + "\n";
    const bool is_new = known.insert(text).second;
    if (!is_new || point->ranks == 1) continue;
    const strategies::StepTraffic& traffic = expected.at(point).by_phase;
    if (traffic != strategies::StepTraffic{}) rows.push_back({point, traffic});
  }
  Table table = make_table(
      "communication", "Communication of a step by phase",
      join(via(&TrafficRow::point, settings),
           through<TrafficRow>([](const TrafficRow& row) { return row.traffic; }, phase_traffic_columns())),
      rows);
  table.explanations.emplace_back("A strategy and number of ranks without a row communicates nothing.");
  return table;
}

}  // namespace shardmark
