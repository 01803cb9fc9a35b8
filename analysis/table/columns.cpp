#include "analysis/table/columns.h"

#include <fmt/format.h>

namespace shardmark {
namespace {

using Sharers = std::vector<const Column*>;  // of one definition

// "exposed" for all columns under that heading, "step time low, high" for some; columns under several
// headings share their names: "measured" of "parameters measured" and "gradients measured".
std::string names_of(const Sharers& sharers, const std::vector<Column>& columns) {
  const std::string& group = sharers.front()->group;
  const auto is_in_group = [&](const Column& column) { return column.group == group; };
  const bool is_one_group =
      std::all_of(sharers.begin(), sharers.end(), [&](const Column* column) { return is_in_group(*column); });
  const auto num_in_group = std::count_if(columns.begin(), columns.end(), is_in_group);
  if (is_one_group && !group.empty() && num_in_group == std::ssize(sharers)) return group;
  std::vector<std::string> names;
  for (const Column* column : sharers)
    if (std::find(names.begin(), names.end(), column->name) == names.end()) names.push_back(column->name);
  return fmt::format("{}{}", is_one_group && !group.empty() ? group + " " : "", fmt::join(names, ", "));
}

}  // namespace

std::vector<Definition> definitions_of(const std::vector<Column>& columns) {
  std::vector<Definition> definitions;
  for (auto column = columns.begin(); column != columns.end(); ++column) {
    const auto is_alike = [&](const Column& other) { return other.definition == column->definition; };
    if (column->definition.empty() || std::any_of(columns.begin(), column, is_alike)) continue;
    Sharers sharers;
    for (const Column& other : columns)
      if (is_alike(other)) sharers.push_back(&other);
    definitions.push_back({names_of(sharers, columns), column->definition});
  }
  return definitions;
}

void add_whole_name(const Cell& cell, std::set<std::string>& names) {
  if (!cell.value.is<std::string>()) return;
  if (auto name = cell.value.get<std::string>(); name != cell.text) names.insert(std::move(name));
}

std::set<std::string> whole_names_of(const Table& table) {
  std::set<std::string> names;
  for (size_t c = 0; c < table.columns.size(); ++c)
    if (table.columns[c].is_brief)
      for (const auto& row : table.rows) add_whole_name(row[c], names);
  return names;
}

std::vector<std::string> column_explanations(const Table& table) {
  std::vector<Column> seen;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    const Column& column = table.columns[c];
    const auto says_something = [&](const auto& row) { return !row[c].says_nothing(); };
    if ((!column.fold && !column.is_optional) ||
        std::any_of(table.rows.begin(), table.rows.end(), says_something))
      seen.push_back(column);
  }
  std::vector<std::string> notes;
  for (const Definition& definition : definitions_of(seen))
    notes.push_back(definition.names + ": " + definition.text);
  return notes;
}

}  // namespace shardmark
