// A column of a table is one row: its heading, how its cells are made, and what they mean.
#pragma once

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "analysis/table/table.h"

namespace shardmark {

template <class Row>
struct ColumnOf {
  Column head;
  std::function<Cell(const Row&)> cell;
  std::string definition = {};  // Column::definition, which is easier to read behind the cell
};
template <class Row>
using ColumnsOf = std::vector<ColumnOf<Row>>;

template <class Row, class... More>
ColumnsOf<Row> join(ColumnsOf<Row> columns, More... more) {
  (std::move(more.begin(), more.end(), std::back_inserter(columns)), ...);
  return columns;
}

template <class Row>
ColumnsOf<Row> without(ColumnsOf<Row> columns, std::initializer_list<std::string_view> names) {
  std::erase_if(columns, [&](const ColumnOf<Row>& column) {
    return std::find(names.begin(), names.end(), column.head.name) != names.end();
  });
  return columns;
}

template <class Row>
ColumnsOf<Row> starting(Starts starts, ColumnsOf<Row> columns) {
  for (ColumnOf<Row>& column : columns) column.head.starts = starts;
  return columns;
}

// Columns of what a function makes of a row: through<Record>(speed_of, throughput_columns()).
template <class Row, class Part, class Get>
ColumnsOf<Row> through(Get part_of, ColumnsOf<Part> columns) {
  ColumnsOf<Row> of_rows;
  for (ColumnOf<Part>& column : columns)
    of_rows.push_back(
        {std::move(column.head),
         [cell = std::move(column.cell), part_of](const Row& row) { return cell(part_of(row)); },
         std::move(column.definition)});
  return of_rows;
}

// Columns of what a row points to: via(&Gap::merged, labels.columns()).
template <class Row, class Part>
ColumnsOf<Row> via(const Part* Row::*part, ColumnsOf<Part> columns) {
  return through<Row>([part](const Row& row) -> const Part& { return *(row.*part); }, std::move(columns));
}

// The headings with what they mean.
template <class Row>
std::vector<Column> heads_of(const ColumnsOf<Row>& columns) {
  std::vector<Column> heads;
  for (const ColumnOf<Row>& column : columns) {
    heads.push_back(column.head);
    heads.back().definition = column.definition;
  }
  return heads;
}

// What columns mean. Those with one definition share a line: names "step time low, high".
struct Definition {
  std::string names, text;
};
std::vector<Definition> definitions_of(const std::vector<Column>& columns);

// "names: text" of the columns that people see: those that fold and are empty in all rows have no line.
std::vector<std::string> column_explanations(const Table& table);

// The values of a brief column that say more than their texts go into `names`.
void add_whole_name(const Cell& cell, std::set<std::string>& names);
std::set<std::string> whole_names_of(const Table& table);

// The explanations are the definitions of the columns. rows: values or pointers.
template <class Row, class Rows>
Table make_table(std::string key, std::string title, const ColumnsOf<Row>& columns, const Rows& rows) {
  Table table{std::move(key), std::move(title), {}, heads_of(columns), {}};
  for (const auto& at : rows) {
    const Row* row;
    if constexpr (std::is_pointer_v<typename Rows::value_type>)
      row = at;
    else
      row = &at;
    std::vector<Cell>& cells = table.rows.emplace_back();
    cells.reserve(columns.size());
    for (const ColumnOf<Row>& column : columns) cells.push_back(column.cell(*row));
  }
  table.explanations = column_explanations(table);
  table.whole_names = whole_names_of(table);
  return table;
}

}  // namespace shardmark
