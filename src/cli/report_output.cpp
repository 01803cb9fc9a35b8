// Prints the report: the first screen with the tables that flags add, or the tables that flags ask for.
#include "cli/report_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/overview/overview.h"
#include "analysis/reference/tables.h"
#include "analysis/tables/names.h"
#include "base/error.h"

namespace shardmark {
namespace {

// A flag that adds a table or columns to a report, and the key of that table. It is shown if no flag selects
// tables.
struct Addition {
  const char* flag;
  const char* key;
};

std::vector<Addition> additions_of(const ReportInputs& inputs) {
  std::vector<Addition> additions;
  if (!std::isnan(inputs.price_per_gpu_hour)) additions.push_back({"--price", "strategies"});
  if (inputs.failures.is_asked()) additions.push_back({"--failures", "goodput"});
  if (inputs.links.size() > specs::interconnect_links().size())
    additions.push_back({"--link", "interconnects"});
  return additions;
}

void refuse_old_names(const std::vector<std::string>& words) {
  for (const std::string& word : words)
    if (const std::string now = table_now(word); !now.empty())
      throw UsageError(fmt::format("--table {}: this is a part of the table {} now; take --table {}", word,
                                   name_of_table(now), now));
}

}  // namespace

void write_report(const std::vector<StudyData>& studies, const ReportInputs& inputs,
                  const TableOutput& output) {
  refuse_old_names(output.only);
  const std::vector<Addition> additions =
      output.is_default() ? additions_of(inputs) : std::vector<Addition>();
  const ReportData data(studies, inputs.references);
  const auto is_added = [&](const Table& table) {
    return std::any_of(additions.begin(), additions.end(),
                       [&](const Addition& one) { return table.key == one.key; });
  };
  // --table selects tables by name. Without it, another format or --all wants every table, and the first
  // screen wants only those that flags have added.
  const auto is_wanted = [&](const Table& table) {
    return output.only.empty()
               ? !output.is_default() || is_added(table)
               : std::any_of(output.only.begin(), output.only.end(),
                             [&](const std::string& word) { return is_called(table.key, word); });
  };
  std::vector<Table> tables;  // a table that is not wanted has only its key
  visit_tables(data, inputs, [&](Table&& table) {
    if (!is_wanted(table)) table = Table{table.key, "", {}, {}, {}};
    tables.push_back(std::move(table));
  });
  if (!output.is_default()) return write_tables(std::move(tables), output);
  Overview overview = overview_of(studies, data.points, data.unfinished, data.scaling);
  overview.standing = standing_of(data.points, inputs.references, data.matches.points, data.rates);
  overview.nodes = nodes_overview(data.nodes);
  for (const Addition& one : additions)
    if (std::none_of(tables.begin(), tables.end(), [&](const Table& table) { return table.key == one.key; }))
      log_warning(fmt::format("{} changes nothing here: these studies have nothing for the table {}",
                              one.flag, one.key));
  std::vector<std::string> shown;
  for (const Table& table : tables)
    if (is_added(table)) shown.push_back(table.key);
  write_first_screen(std::move(overview), tables, output, shown);
}

}  // namespace shardmark
