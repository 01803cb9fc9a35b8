// A Table value: made by every report, rendered as aligned text, Markdown, CSV or JSON.
#pragma once

#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace shardmark {

struct Cell {
  std::string text;      // as people read it
  nlohmann::json value;  // as programs read it, in the column's unit; null: not measured
};

struct Column {
  std::string name;
  std::string unit;     // "" for none
  bool numeric = true;  // aligned right
  // For people only (text, Markdown): when all rows agree, the value moves to a line above them; when no row
  // has one, the column is left out.
  bool fold = false;
  std::string group = {};  // heading over neighbouring columns: "out-of-place"

  std::string full_name() const { return group.empty() ? name : group + " " + name; }  // unique in a table
  std::string heading() const { return full_name() + (unit.empty() ? "" : " (" + unit + ")"); }
};

struct Table {
  std::string key;  // "strategies": for CSV files and JSON
  std::string title;
  std::vector<std::string> notes;  // definitions and cautions, a line each, below the table
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  // For people: a blank line (in text), and a heading of its own, where one of this many leading columns
  // changes.
  size_t num_group_columns = 0;
  size_t num_section_columns = 0;
};

// Columns of a heading, or cells of a row, put together from parts: concat<Cell>({left, {one, two}, right}).
template <class T>
struct Parts {
  std::vector<T> first = {}, second = {}, third = {}, fourth = {};
};
template <class T>
std::vector<T> concat(Parts<T> parts) {
  std::vector<T> whole = std::move(parts.first);
  for (auto* part : {&parts.second, &parts.third, &parts.fourth})
    whole.insert(whole.end(), std::make_move_iterator(part->begin()), std::make_move_iterator(part->end()));
  return whole;
}

enum class Notes { shown, left_out };
std::string to_text(const Table& table, Notes notes = Notes::shown);
std::string to_markdown(const Table& table);
// RFC 4180: lines end in CRLF, the first names the columns with their units; empty where nothing was
// measured.
std::string to_csv(const Table& table);
// An object; its rows are objects too: a column's full name -> value.
nlohmann::ordered_json to_json(const Table& table);

}  // namespace shardmark
