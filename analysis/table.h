// A Table value: made by every report, rendered as aligned text, Markdown, CSV or JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace shardmark {

struct Cell {
  std::string text;            // as people read it
  nlohmann::json value;        // as programs read it; null: not measured
};

struct Column {
  std::string name;
  std::string unit;            // "" for none
  bool numeric = true;         // aligned right
};

struct Table {
  std::string key;             // "strategies": for CSV files and JSON
  std::string title;
  std::vector<std::string> notes;  // definitions and cautions, a line each, below the table
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
};

std::string to_text(const Table& table);
std::string to_markdown(const Table& table);
std::string to_csv(const Table& table);
nlohmann::ordered_json to_json(const Table& table);

}  // namespace shardmark
