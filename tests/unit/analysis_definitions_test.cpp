// analysis/COLUMNS.md defines every column in the same words as the tables do.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>

#include "analysis/compare/tables.h"
#include "analysis/predict/collective_settings.h"
#include "analysis/predict/gap.h"
#include "analysis/predict/predicted_layouts.h"
#include "analysis/reference/tables.h"
#include "analysis/stats/interconnects.h"
#include "analysis/table/cells.h"
#include "analysis/table/columns.h"
#include "analysis_fixture.h"
#include "readme_block.h"

namespace shardmark {
namespace {

// Returns all tables without rows but with their columns. Tables of collectives exist only for operations
// that were measured, so they use an operation with an invented name.
std::vector<Table> all_tables() {
  const MergedPoints none;
  std::vector<Table> tables = {studies_table({}),
                               nodes_table({}),
                               reference_table({}),
                               rates_table({}),
                               collection_table({}),
                               strategies_table(none, 1),
                               accumulation_table(none),
                               optimizations_table(none),
                               measured_goodput_table({}, none, {}, 1),
                               layouts_table(none),
                               sequences_table(none),
                               settings_table(none),
                               together_table(none),
                               phases_table(none),
                               communication_table(none),
                               gap_table(none, {}),
                               start_table(none),
                               scaling_table(Scaling::weak, none, {}),
                               scaling_table(Scaling::strong, none, {}),
                               efficiency_limits_table(none, {}),
                               scaling_laws_table(none, {}),
                               fit_quality_table(none, {}),
                               interconnects_table(none, specs::interconnect_links()),
                               network_table(none),
                               held_out_table(none, {}),
                               memory_table(none),
                               largest_table({}, none),
                               experts_table(none),
                               checkpoints_table(none),
                               collective_fits_table({}),
                               held_out_collectives_table({}),
                               runs_table({}),
                               problems_table({}, none, none, {}),
                               predictions_table(none, {}, {}),
                               predicted_layouts_table({}, {})};
  for (Table& table : sustained_tables(none, none)) tables.push_back(std::move(table));
  for (Table& table : compared_tables(none, {})) tables.push_back(std::move(table));
  const std::vector<StudyData> studies = {study_of({collective_record("any", 2, 8, false, 1e-5)})};
  for (Table& table : collective_tables(merge_repeats(studies))) tables.push_back(std::move(table));
  tables.back().key = "collectives";  // the report has one such table for each operation and number of ranks
  return tables;
}

std::string escaped_bars(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped += c == '|' ? "\\|" : std::string(1, c);
  return escaped;
}

// Returns the definitions as rows of a Markdown table. Tables that share a definition share a row.
std::string definitions_text() {
  std::vector<std::pair<std::string, std::string>> rows;  // names of tables, and the rest of the row
  for (const Table& table : all_tables())
    for (const Definition& definition : definitions_of(table.columns)) {
      const std::string rest =
          ": " + escaped_bars(definition.names) + " | " + escaped_bars(definition.text) + " |\n";
      const auto row =
          std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.second == rest; });
      if (row == rows.end())
        rows.emplace_back(table.key, rest);
      else
        row->first += ", " + table.key;
    }
  std::string text = "| tables: columns | what they mean |\n|---|---|\n";
  for (const auto& [tables, rest] : rows) text += "| " + tables + rest;
  return text;
}

TEST(Definitions, OfAllColumnsStandOnTheirPage) { expect_block("COLUMNS.md", "columns", definitions_text()); }

TEST(Definitions, NoTableOfTheReportIsForgotten) {
  const std::string declared = read_text(SHARDMARK_SOURCE_DIR "/analysis/tables/tables.h"),
                    tried = read_text(SHARDMARK_SOURCE_DIR "/tests/unit/analysis_definitions_test.cpp");
  const std::regex name("\\w+_tables?\\(");
  int64_t count = 0;
  for (std::sregex_iterator found(declared.begin(), declared.end(), name), end; found != end;
       ++found, ++count)
    EXPECT_NE(tried.find(found->str()), std::string::npos) << found->str() << ") is not in all_tables()";
  EXPECT_GT(count, 15);
}

// Column names are unique, because programs look columns up by name.
TEST(Definitions, NoTableHasAColumnTwice) {
  for (const Table& table : all_tables()) {
    std::set<std::string> names;
    for (const Column& column : table.columns)
      EXPECT_TRUE(names.insert(column.full_name()).second) << table.key << ": " << column.full_name();
  }
}

TEST(Definitions, NameTheColumnsThatShareThem) {
  const std::string interval = "95 % interval.", wait = "waiting.", is = "measured.";
  const auto column = [](const char* name, const char* group, const std::string& definition) {
    return Column{name, "ms", true, false, group, Starts::nothing, definition};
  };
  const auto definitions =
      definitions_of({column("ranks", "", ""), column("median", "step time", "of all steps."),
                      column("low", "step time", interval), column("high", "step time", interval),
                      column("time", "exposed", wait), column("of step", "exposed", wait),
                      column("measured", "parameters", is), column("predicted", "parameters", ""),
                      column("measured", "gradients", is)});
  std::vector<std::string> names;
  for (const Definition& definition : definitions) names.push_back(definition.names);
  EXPECT_EQ(names,
            (std::vector<std::string>{"step time median", "step time low, high", "exposed", "measured"}));
}

TEST(Definitions, OfColumnsThatNobodySeesAreNoNotes) {
  const ColumnsOf<double> columns = {
      {{"x", ""}, [](double x) { return cells::number(x); }, "a number."},
      {{"y", "", true, true}, [](double) { return cells::number(NAN); }, "another one."}};
  const Table table = make_table("t", "T", columns, std::vector<double>{1, 2});
  EXPECT_EQ(table.explanations, std::vector<std::string>{"x: a number."});
  EXPECT_EQ(table.rows[1][0].text, "2.000");
}

}  // namespace
}  // namespace shardmark
