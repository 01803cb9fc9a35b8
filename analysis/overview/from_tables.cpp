// Answers that are rows of a table already: the largest batch of each strategy, and sustained runs from their
// beginning to their end. What the rows share stands nowhere, what differs is their names.
#include <algorithm>

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

bool differs(const Table& table, size_t column) {
  return std::any_of(table.rows.begin(), table.rows.end(),
                     [&](const auto& row) { return row[column].text != table.rows.front()[column].text; });
}

// "fsdp(shard=gradients), recomputed full": of the columns before `end`, a number with its column's name.
Cell name_of_row(const Table& table, const std::vector<Cell>& row, size_t end, bool with_shared) {
  Cell name;
  for (size_t c = 0; c < end; ++c) {
    const Cell& cell = row[c];
    if (cell.says_nothing() || cell.text == "no" || !(with_shared || differs(table, c))) continue;
    const Column& column = table.columns[c];
    const bool is_word = !column.numeric && cell.text != "yes";
    name.text += name.text.empty() ? "" : ", ";
    name.text += is_word ? cell.text : column.name + (cell.text == "yes" ? "" : " " + cell.text);
  }
  name.value = name.text;
  return name;
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
  const size_t end = place_of(table, shown.front().column);
  OverviewGroup& group = answer.groups.emplace_back();
  for (const auto& row : table.rows) {
    std::vector<Cell>& cells = group.rows.emplace_back();
    cells.push_back(name_of_row(table, row, end, false));
    if (cells.front().text.empty()) cells.front() = name_of_row(table, row, end, true);
    for (const size_t place : places) cells.push_back(row[place]);
  }
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
