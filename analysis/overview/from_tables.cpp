// Answers that are rows of a table already: the largest batch of each strategy, what checkpoints take, and
// sustained runs from their beginning to their end.
#include <algorithm>

#include "analysis/frame/names.h"
#include "analysis/overview/overview.h"
#include "analysis/tables/tables.h"

namespace shardmark {
namespace {

struct ShownColumn {
  std::string column;   // its full name in the table
  std::string heading;  // here
};

size_t place_of(const Table& table, const std::string& column) {
  const auto found = std::find_if(table.columns.begin(), table.columns.end(),
                                  [&](const Column& one) { return one.full_name() == column; });
  return static_cast<size_t>(found - table.columns.begin());
}

// Where nobody asks, as long as all rows agree.
bool is_usual(const std::string& column, const std::string& text) {
  return column == "machine" || column == "transport" || column == "seed" ||
         (column == "data" && text.starts_with("synthetic")) || (column == "accumulation" && text == "1");
}

// What says which row it is: the columns before `end`.
LabelParts parts_of(const Table& table, const std::vector<Cell>& row, size_t end) {
  LabelParts parts;
  for (size_t c = 0; c < end; ++c) {
    const std::string& name = table.columns[c].name;
    const Said said = name == "strategy" || name == "operation" ? Said::always
                      : is_usual(name, row[c].text)             ? Said::if_differs
                                                                : Said::once;
    parts.push_back(part_of(table.columns[c], row[c], said));
  }
  return parts;
}

OverviewTable answer_from(const Table& table, const std::vector<ShownColumn>& shown) {
  OverviewTable answer{table.title, table.key, {{.name = "point", .numeric = false}}, {}, {}};
  std::vector<size_t> places;
  for (const ShownColumn& one : shown) {
    const size_t place = place_of(table, one.column);
    if (place == table.columns.size()) continue;
    places.push_back(place);
    Column& column = answer.columns.emplace_back(table.columns[place]);
    column.group.clear();
    column.name = one.heading;
  }
  if (table.rows.empty() || places.empty()) return answer;
  // The columns before the first shown one say which row it is; they become the row's name.
  const size_t end = place_of(table, shown.front().column);
  OverviewGroup& group = answer.groups.emplace_back();
  std::vector<LabelParts> names;
  for (const auto& row : table.rows) {
    names.push_back(parts_of(table, row, end));
    std::vector<Cell>& cells = group.rows.emplace_back();
    cells.emplace_back();
    for (const size_t place : places) cells.push_back(row[place]);
  }
  answer.shared = name_rows(group, names);
  return answer;
}

}  // namespace

OverviewTable largest_overview(const std::vector<StudyData>& studies,
                               const std::vector<MergedPoint>& points) {
  return answer_from(largest_table(studies, points), {{"largest batch", "largest batch"},
                                                      {"too large", "too large"},
                                                      {"predicted", "predicted"},
                                                      {"at the largest batch peak", "peak memory"},
                                                      {"at the largest batch step", "step"}});
}

OverviewTable checkpoints_overview(const std::vector<MergedPoint>& points) {
  return answer_from(checkpoints_table(points), {{"state written", "size"},
                                                 {"write time", "write"},
                                                 {"write rate", "write"},
                                                 {"stall", "stall"},
                                                 {"read time", "read"},
                                                 {"read rate", "read"}});
}

OverviewTable sustained_overview(const std::vector<MergedPoint>& points,
                                 const std::vector<MergedPoint>& unfinished) {
  return answer_from(sustained_tables(points, unfinished).front(), {{"duration", "duration"},
                                                                    {"first", "first"},
                                                                    {"last", "last"},
                                                                    {"change of last to first", "change"},
                                                                    {"change low", "low"},
                                                                    {"change high", "high"},
                                                                    {"slow", "slow ranks"}});
}

}  // namespace shardmark
