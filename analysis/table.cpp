// Folding of columns, and the forms of a table that need no layout: Markdown, CSV, JSON.
#include "analysis/table.h"

#include <algorithm>

#include "base/error.h"

namespace shardmark {
namespace {

bool all_rows(const Table& table, const auto& holds) {
  return std::all_of(table.rows.begin(), table.rows.end(), holds);
}

std::string escaped(std::string text, const std::string& special, char escape) {
  for (size_t at = 0; (at = text.find_first_of(special, at)) != std::string::npos; at += 2)
    text.insert(at, 1, escape);
  return text;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  return '"' + escaped(text, "\"", '"') + '"';
}

std::string csv_field(const nlohmann::json& value) {
  if (value.is_null()) return "";
  return csv_field(value.is_string() ? value.get<std::string>() : value.dump());
}

std::string markdown_row(const std::vector<std::string>& fields) {
  std::string line = "|";
  for (const std::string& field : fields) line += " " + field + " |";
  return line + "\n";
}

}  // namespace

Folded fold(const Table& table) {
  Folded folded;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    const Column& column = table.columns[c];
    const bool foldable = column.fold && !table.rows.empty();
    if (foldable && all_rows(table, [c](const auto& row) { return row[c].value.is_null(); })) continue;
    const bool same =
        foldable && all_rows(table, [&](const auto& row) { return row[c].text == table.rows[0][c].text; });
    if (!same) {
      folded.columns.push_back(c);
      continue;
    }
    folded.caption += folded.caption.empty() ? "Every row: " : "; ";
    folded.caption +=
        column.full_name() + " " + table.rows[0][c].text + (column.unit.empty() ? "" : " " + column.unit);
  }
  if (!folded.caption.empty()) folded.caption += ".";
  return folded;
}

std::string to_markdown(const Table& table) {
  const Folded folded = fold(table);
  std::string out = "## " + table.title + "\n\n";
  if (!folded.caption.empty()) out += folded.caption + "\n\n";
  std::vector<std::string> headings, rules;
  for (size_t c : folded.columns) {
    headings.push_back(escaped(table.columns[c].heading(), "|", '\\'));
    rules.push_back(table.columns[c].numeric ? "---:" : ":---");
  }
  out += markdown_row(headings) + markdown_row(rules);
  for (const auto& row : table.rows) {
    std::vector<std::string> fields;
    for (size_t c : folded.columns) fields.push_back(escaped(row[c].text, "|", '\\'));
    out += markdown_row(fields);
  }
  if (!table.notes.empty()) out += "\n";
  for (const std::string& note : table.notes) out += "- " + note + "\n";
  return out;
}

std::string to_csv(const Table& table) {
  std::string out;
  for (const Column& column : table.columns) out += (out.empty() ? "" : ",") + csv_field(column.heading());
  out += "\r\n";
  for (const auto& row : table.rows) {
    ENSURE(row.size() == table.columns.size(), "row and columns differ in " + table.key);
    for (size_t c = 0; c < row.size(); ++c) out += (c == 0 ? "" : ",") + csv_field(row[c].value);
    out += "\r\n";
  }
  return out;
}

nlohmann::ordered_json to_json(const Table& table) {
  auto columns = nlohmann::ordered_json::array();
  for (const Column& column : table.columns)
    columns.push_back({{"name", column.full_name()}, {"unit", column.unit}});
  auto rows = nlohmann::ordered_json::array();
  for (const auto& row : table.rows) {
    ENSURE(row.size() == table.columns.size(), "row and columns differ in " + table.key);
    auto object = nlohmann::ordered_json::object();
    for (size_t c = 0; c < row.size(); ++c) object[table.columns[c].full_name()] = row[c].value;
    rows.push_back(std::move(object));
  }
  return {{"key", table.key},
          {"title", table.title},
          {"notes", table.notes},
          {"columns", columns},
          {"rows", rows}};
}

}  // namespace shardmark
