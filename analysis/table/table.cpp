// The forms of a table that need no layout: Markdown, CSV, JSON.
#include "analysis/table/table.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "analysis/table/view.h"
#include "base/error.h"
#include "base/text.h"
#include "schema/json.h"

namespace shardmark {
namespace {

std::string escaped(std::string text, const std::string& special, char escape) {
  for (size_t at = 0; (at = text.find_first_of(special, at)) != std::string::npos; at += 2)
    text.insert(at, 1, escape);
  return text;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  return '"' + escaped(text, "\"", '"') + '"';
}

std::string csv_field(const OptionValue& value) {
  if (value.is_nothing()) return "";
  return csv_field(value.is<std::string>() ? value.get<std::string>() : to_json(value).dump());
}

// Names in a study come from anywhere: no HTML of theirs.
std::string markdown(const std::string& text) { return escaped(printable(text, ""), "\\<", '\\'); }
std::string markdown_field(const std::string& text) { return escaped(printable(text, ""), "\\<|", '\\'); }

std::string markdown_row(const std::vector<std::string>& fields) {
  std::string line = "|";
  for (const std::string& field : fields) line += " " + field + " |";
  return line + "\n";
}

std::string markdown_rows(const Section& section) {
  std::vector<std::string> headings, rules;
  for (const Column& column : section.columns) {
    headings.push_back(markdown_field(column.heading()));
    rules.push_back(column.numeric ? "---:" : ":---");
  }
  std::string out = markdown_row(headings) + markdown_row(rules);
  for (const auto& row : section.rows) {
    std::vector<std::string> fields;
    fields.reserve(row.size());
    for (const Cell* cell : row) fields.push_back(markdown_field(cell->text));
    out += markdown_row(fields);
  }
  return out;
}

std::vector<std::string> all_notes(const Table& table) {
  std::vector<std::string> notes = table.notes;
  for (std::string& explanation : all_explanations(table)) notes.push_back(std::move(explanation));
  return notes;
}

}  // namespace

std::string whole_names_note(const std::set<std::string>& names) {
  return fmt::format("With every option: {}.", fmt::join(names, "; "));
}

std::vector<std::string> all_explanations(const Table& table) {
  std::vector<std::string> all = table.explanations;
  if (!table.whole_names.empty()) all.push_back(whole_names_note(table.whole_names));
  return all;
}

void say_names_once(std::vector<Table>& tables) {
  std::set<std::string> said;
  for (Table& table : tables)
    std::erase_if(table.whole_names, [&](const std::string& name) { return !said.insert(name).second; });
}

std::string to_markdown(const Table& table) {
  const View view = view_of(table);
  std::string out = "## " + markdown(table.title) + "\n";
  if (!view.caption.empty()) out += "\n" + markdown(view.caption) + "\n";
  for (const Section& section : view.sections) {
    if (!section.caption.empty()) out += "\n### " + markdown(section.caption) + "\n";
    out += "\n" + markdown_rows(section);
  }
  const std::vector<std::string> notes = all_notes(table);
  if (!notes.empty()) out += "\n";
  for (const std::string& note : notes) out += "- " + markdown(note) + "\n";
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
    for (size_t c = 0; c < row.size(); ++c) object[table.columns[c].full_name()] = to_json(row[c].value);
    rows.push_back(std::move(object));
  }
  return {{"key", table.key},
          {"title", table.title},
          {"notes", all_notes(table)},
          {"columns", columns},
          {"rows", rows}};
}

}  // namespace shardmark
