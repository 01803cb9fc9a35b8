// The plan as tables: collectives are a row per operation and rank count (its sizes are one range), and
// points that cannot run a row per reason.
#include "cli/plan_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "analysis/table/axis_columns.h"
#include "analysis/table/cells.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

bool can_run(const Point& point) { return point.impossible.empty(); }

// An operation in all sizes that share the rest.
struct Sizes {
  Point kind;  // without a size
  const Point *smallest, *largest;
  int64_t count = 0;
};

std::vector<Sizes> sizes_of(const std::vector<const Point*>& points) {
  std::vector<Sizes> rows;
  std::map<std::string, size_t> row_of;
  for (const Point* point : points) {
    Point kind = *point;
    kind.collective.bytes = 0;
    const auto [at, is_new] = row_of.emplace(point_id(kind), rows.size());
    if (is_new) rows.push_back({kind, point, point});
    Sizes& sizes = rows[at->second];
    if (point->collective.bytes < sizes.smallest->collective.bytes) sizes.smallest = point;
    if (point->collective.bytes > sizes.largest->collective.bytes) sizes.largest = point;
    ++sizes.count;
  }
  return rows;
}

ColumnsOf<Sizes> operation_columns() {
  const auto words_of = [](std::string CollectivePoint::*member) {
    return [member](const Sizes& row) { return cells::words(row.kind.collective.*member); };
  };
  return {
      {{"operation", "", false}, words_of(&CollectivePoint::operation)},
      {{"type", "", false, true}, words_of(&CollectivePoint::dtype)},
      {{"reduction", "", false}, words_of(&CollectivePoint::reduction)},
      {{"in place", "", false, true},
       [](const auto& row) { return cells::yes_no(row.kind.collective.in_place); }},
      {{"ranks", ""}, [](const auto& row) { return cells::count(row.kind.ranks); }},
      {{"sizes", ""}, [](const auto& row) { return cells::count(row.count); }},
      {{"smallest", "bytes"}, [](const auto& row) { return cells::count(row.smallest->collective.bytes); }},
      {{"largest", "bytes"}, [](const auto& row) { return cells::count(row.largest->collective.bytes); }},
      {{"traffic", "MiB per rank"},
       [](const auto& row) { return cells::mebibytes(expect(*row.largest).cost.traffic_bytes); },
       "what a ring sends for the largest message: bytes x ring factor, mean over ranks."}};
}

Table collectives_table(const std::vector<const Point*>& points) {
  const ColumnsOf<Sizes> transport = {
      {choice_column("transport", true), [](const auto& row) { return transport_cell(row.kind.transport); }}};
  const auto sampling = [](const Sizes& row) -> const Sampling& { return row.kind.sampling; };
  return make_table("collectives", "Collective points",
                    join(transport, sampling_columns<Sizes>(sampling), operation_columns()),
                    sizes_of(points));
}

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

std::string impossible_name(const Point& point) {
  const std::string ranks = fmt::format("{} rank{}", point.ranks, point.ranks == 1 ? "" : "s");
  const CollectivePoint& c = point.collective;
  if (point.workload == "collective")
    return fmt::format("{} {}{}, {}", c.operation, c.dtype, c.reduction == "none" ? "" : " " + c.reduction,
                       ranks);
  const int64_t batch =
      point.training.batch_size;  // 0: the ranks do not divide the global batch, as the reason says
  return fmt::format("{}{}, {}", strategy_text(point.training),
                     batch > 0 ? fmt::format(", batch {}", batch) : "", ranks);
}

std::vector<Table> plan_tables(const std::vector<Point>& plan, const World& world, int64_t limit_bytes,
                               int64_t num_samples) {
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
  if (!training.empty()) tables.push_back(training_table(training, limit_bytes));
  if (Table moved = communication_table(training); !moved.rows.empty()) tables.push_back(std::move(moved));
  if (num_samples > 0) {
    training.insert(training.end(), open.begin(), open.end());
    tables.push_back(samples_table(training, num_samples));
  }
  if (!open.empty()) tables.push_back(auto_table(open, world));
  if (!collectives.empty()) tables.push_back(collectives_table(collectives));
  if (!impossible.empty()) tables.push_back(impossible_table(impossible));
  return tables;
}

PlanTotals plan_totals(const std::vector<Point>& plan) {
  PlanTotals totals;
  totals.num_points = static_cast<int64_t>(plan.size());
  for (const auto& point : plan) {
    if (!can_run(point)) {
      ++totals.num_impossible;
      continue;
    }
    const Sampling& s = point.sampling;
    totals.time_limit_s += s.duration_s > 0 ? s.duration_s : s.time_limit_s;
    totals.besides_s += s.time_limit_s;
    if (point.repeat == 0) totals.most_bytes = std::max(totals.most_bytes, total_bytes(expect(point)));
  }
  return totals;
}

}  // namespace shardmark
