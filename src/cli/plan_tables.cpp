// The plan as tables, and its totals. Points that cannot run get a row for each reason.
#include "cli/plan_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/table/axis_columns.h"
#include "analysis/table/cells.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

bool can_run(const Point& point) { return point.impossible.empty(); }

Table impossible_table(const std::vector<const Point*>& points) {
  using Key = std::array<std::string, 3>;  // model, what, why
  using Row = std::pair<Key, int64_t>;
  std::vector<Row> rows;
  for (const Point* point : points) {
    const Key key = {point->workload == "training" ? brief_text("model", point->training.model) : "",
                     impossible_name(*point), point->impossible};
    auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.first == key; });
    if (row == rows.end()) row = rows.insert(row, {key, 0});
    ++row->second;
  }
  const auto words_of = [](size_t part) {
    return [part](const Row& row) { return cells::words(row.first[part]); };
  };
  const ColumnsOf<Row> columns = {{{"model", "", false, true, "", Starts::section}, words_of(0)},
                                  {{"what", "", false}, words_of(1)},
                                  {{"why", "", false}, words_of(2)},
                                  {{"points", ""}, [](const auto& row) { return cells::count(row.second); }}};
  return make_table("impossible", "Points that cannot run", columns, rows);
}

}  // namespace

ColumnsOf<Point> measuring_columns() {
  const auto unless_lasting = [](auto cell) {
    return [=](const Point& p) { return cells::unless_default(p.sampling.duration_s > 0, cell(p.sampling)); };
  };
  return {{choice_column("transport", true), [](const Point& p) { return transport_cell(p.transport); }},
          {{"environment", "", false, true}, [](const Point& p) { return cells::words(p.environment); }},
          {{"steps at least", "", true, true},
           unless_lasting([](const Sampling& s) { return cells::count(s.min_steps); })},
          {{"steps at most", "", true, true},
           unless_lasting([](const Sampling& s) { return cells::count(s.max_steps); })},
          {{"time limit", "s", true, true},
           unless_lasting([](const Sampling& s) { return cells::number(s.time_limit_s, 3); })},
          {{"duration", "s", true, true}, [](const Point& p) {
             return cells::unless_default(!(p.sampling.duration_s > 0),
                                          cells::number(p.sampling.duration_s, 4));
           }}};
}

std::string impossible_name(const Point& point) {
  const std::string ranks = fmt::format("{} rank{}", point.ranks, point.ranks == 1 ? "" : "s");
  const CollectivePoint& c = point.collective;
  if (point.workload == "collective")
    return fmt::format("{} {}{}, {}", c.operation, c.dtype, c.reduction == "none" ? "" : " " + c.reduction,
                       ranks);
  // The batch is 0 if the ranks do not divide the global batch; the reason says so.
  const int64_t batch = point.training.batch_size;
  return fmt::format("{}{}, {}", strategy_text(point.training),
                     batch > 0 ? fmt::format(", batch {}", batch) : "", ranks);
}

std::vector<Table> plan_tables(const std::vector<Point>& plan, const Expectations& expected,
                               const World& world, int64_t limit_bytes) {
  std::vector<const Point*> training, open, collectives, impossible;
  for (const auto& point : plan) {
    if (point.repeat != 0) continue;
    if (can_run(point) && point.workload == "training" && point.training.strategy.name == "auto")
      open.push_back(&point);
    else
      (!can_run(point)                ? impossible
       : point.workload == "training" ? training
                                      : collectives)
          .push_back(&point);
  }
  std::vector<Table> tables;
  if (!training.empty()) tables.push_back(training_table(training, expected, limit_bytes));
  if (Table moved = communication_table(training, expected); !moved.rows.empty())
    tables.push_back(std::move(moved));
  if (!open.empty()) tables.push_back(auto_table(open, world));
  if (!collectives.empty()) tables.push_back(collectives_table(collectives));
  if (!impossible.empty()) tables.push_back(impossible_table(impossible));
  return tables;
}

PlanTotals plan_totals(const std::vector<Point>& plan, const Expectations& expected) {
  PlanTotals totals;
  totals.num_points = static_cast<int64_t>(plan.size());
  for (const auto& point : plan) {
    if (!can_run(point)) {
      ++totals.num_impossible;
      continue;
    }
    const Sampling& s = point.sampling;
    totals.time_limit_s += time_limit_s(point);
    totals.besides_s += s.time_limit_s;
  }
  for (const auto& [point, expectation] : expected)
    totals.most_bytes = std::max(totals.most_bytes, expectation.total_bytes());
  return totals;
}

}  // namespace shardmark
