// A row per operation and rank count: its sizes are one range.
#include <map>

#include "analysis/table/axis_columns.h"
#include "cli/plan_tables.h"

namespace shardmark {
namespace {

// An operation in all sizes that share the rest.
struct Sizes {
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
    if (is_new) rows.push_back({point, point});
    Sizes& sizes = rows[at->second];
    if (point->collective.bytes < sizes.smallest->collective.bytes) sizes.smallest = point;
    if (point->collective.bytes > sizes.largest->collective.bytes) sizes.largest = point;
    ++sizes.count;
  }
  return rows;
}

ColumnsOf<Sizes> operation_columns() {
  const auto words_of = [](std::string CollectivePoint::*member) {
    return [member](const Sizes& row) { return cells::words(row.smallest->collective.*member); };
  };
  return {
      {{"operation", "", false}, words_of(&CollectivePoint::operation)},
      {{"type", "", false, true}, words_of(&CollectivePoint::dtype)},
      {{"reduction", "", false}, words_of(&CollectivePoint::reduction)},
      {{"in place", "", false, true},
       [](const auto& row) { return cells::yes_no(row.smallest->collective.in_place); }},
      {{"ranks", ""}, [](const auto& row) { return cells::count(row.smallest->ranks); }},
      {{"sizes", ""}, [](const auto& row) { return cells::count(row.count); }},
      {{"smallest", "bytes"}, [](const auto& row) { return cells::count(row.smallest->collective.bytes); }},
      {{"largest", "bytes"}, [](const auto& row) { return cells::count(row.largest->collective.bytes); }},
      {{"traffic", "MiB per rank"},
       [](const auto& row) { return cells::mebibytes(expect(*row.largest).cost.traffic_bytes); },
       "what a ring sends for the largest message: bytes x ring factor, mean over ranks."}};
}

}  // namespace

Table collectives_table(const std::vector<const Point*>& points) {
  return make_table("collectives", "Collective points",
                    join(via(&Sizes::smallest, measuring_columns()), operation_columns()), sizes_of(points));
}

OverviewTable collectives_answer(const std::vector<const Point*>& points) {
  Table table = make_table("collectives", "Collectives",
                           without(operation_columns(), {"type", "reduction", "in place"}), sizes_of(points));
  return {table.title, table.key, std::move(table.columns), {{"", std::move(table.rows)}}};
}

}  // namespace shardmark
