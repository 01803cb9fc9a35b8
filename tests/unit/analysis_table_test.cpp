// Tests the four formats of a table (text, CSV as in RFC 4180, Markdown, JSON), how columns are folded and
// wrapped, and its cells.
#include <gtest/gtest.h>

#include "analysis/report.h"
#include "analysis/table/axis_columns.h"
#include "analysis/table/cells.h"
#include "analysis/table/columns.h"
#include "analysis/table/table.h"
#include "analysis/tables/names.h"
#include "analysis_fixture.h"

namespace shardmark {
namespace {

Table small_table() {
  Table table{"small",
              "Small",
              {"A note."},
              {{"model", "", false, true},
               {"name", "", false},
               {"time", "ms", true, false, "step"},
               {"tokens/s", "", true, true}},
              {}};
  table.rows.push_back(
      {cells::words("gpt2"), cells::words("a, \"b\""), cells::number(1.5), cells::number(NAN)});
  table.rows.push_back({cells::words("gpt2"), cells::words("c | d"), cells::number(NAN), cells::number(NAN)});
  return table;
}

// Parses CSV as RFC 4180 defines it, independently of the code that writes it.
std::vector<std::vector<std::string>> parse_csv(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1, {""});
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    std::string& field = rows.back().back();
    if (quoted && c == '"' && text[i + 1] == '"')
      field += text[++i];
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted && c == ',')
      rows.back().emplace_back();
    else if (!quoted && c == '\r' && text[i + 1] == '\n')
      rows.push_back({""}), ++i;
    else
      field += c;
  }
  rows.pop_back();  // the empty row after the last CRLF
  return rows;
}

TEST(Table, TextFoldsConstantAndEmptyColumns) {
  EXPECT_EQ(to_text(small_table()),
            "Small\n=====\nEvery row: model gpt2.\n\n"
            "        step\n"
            "name     time\n"
            "           ms\n"
            "------  -----\n"
            "a, \"b\"  1.500\n"
            "c | d       -\n"
            "\n* A note.\n");
}

TEST(Table, TextWrapsLongWordsAndSeparatesGroups) {
  Table table{"t", "T", {}, {{"id", "", true, false, "", Starts::group}, {"why", "", false}}, {}};
  const std::string sentence =
      "a reason that goes on and on until it is much too long for one line of a table";
  table.rows = {{cells::count(1), cells::words(sentence)},
                {cells::count(1), cells::words("x")},
                {cells::count(2), cells::words("short")}};
  EXPECT_EQ(to_text(table),
            "T\n=\n\n"
            "id  why\n"
            "--  ----------------------------------------------------------\n"
            " 1  a reason that goes on and on until it is much too long for\n"
            "    one line of a table\n"
            " 1  x\n"
            "\n"
            " 2  short\n");
}

TEST(Table, RowsAboutDifferentThingsBecomeSections) {
  Table table{"t",
              "T",
              {},
              {{"data", "", false, true, "", Starts::section},
               {"model", "", false, true, "", Starts::section},
               {"tokens/s", "", true, true},
               {"ms", ""}},
              {}};
  for (int i = 0; i < 2; ++i)
    table.rows.push_back(
        {cells::words("text"), cells::words("gpt2"), cells::count(7 + i), cells::count(1 + i)});
  table.rows.push_back({cells::words("text"), cells::words("mlp"), cells::number(NAN), cells::count(3)});
  EXPECT_EQ(to_text(table),
            "T\n=\nEvery row: data text.\n"
            "\n-> model gpt2\n\ntokens/s  ms\n--------  --\n       7   1\n       8   2\n"
            "\n-> model mlp\n\nms\n--\n 3\n");
  EXPECT_NE(to_markdown(table).find("\n### model mlp\n\n| ms |\n| ---: |\n| 3 |\n"), std::string::npos);
}

TEST(Table, CsvParsesBack) {
  const auto rows = parse_csv(to_csv(small_table()));
  ASSERT_EQ(rows.size(), 3u);
  // CSV has all columns.
  EXPECT_EQ(rows[0], (std::vector<std::string>{"model", "name", "step time (ms)", "tokens/s"}));
  EXPECT_EQ(rows[1], (std::vector<std::string>{"gpt2", "a, \"b\"", "1.5", ""}));
  EXPECT_EQ(rows[2], (std::vector<std::string>{"gpt2", "c | d", "", ""}));
}

TEST(Table, CsvKeepsLineBreaksAndEveryDigit) {
  Table table{"t",
              "T",
              {},
              {{"why", "", false}, {"x", ""}},
              {{cells::words("two\nlines"), cells::number(0.1 + 0.2)}}};
  const auto rows = parse_csv(to_csv(table));
  EXPECT_EQ(rows[1][0], "two\nlines");
  EXPECT_EQ(std::stod(rows[1][1]), 0.1 + 0.2);
  EXPECT_EQ(table.rows[0][0].text, "two lines");  // a line break would break the alignment of the text
}

TEST(Table, JsonParsesBack) {
  const auto json = nlohmann::json::parse(to_json(small_table()).dump());
  EXPECT_EQ(json["key"], "small");
  EXPECT_EQ(json["columns"][2], (nlohmann::json{{"name", "step time"}, {"unit", "ms"}}));
  EXPECT_EQ(json["rows"][0]["step time"], 1.5);
  EXPECT_TRUE(json["rows"][1]["step time"].is_null());
}

TEST(Table, MarkdownHoldsNoHtmlOfNames) {
  const std::string name = "<img src=x onerror=alert(1)>";
  Table table = small_table();
  table.columns[0].starts = Starts::section;
  table.notes = {name, "\\" + name};
  table.rows[0] = {cells::words(name), cells::words(name), cells::number(1), cells::number(1)};
  for (int i = 0; i < 2; ++i) {  // first as the caption of a section, then as that of all rows
    const std::string text = to_markdown(table);
    // A backslash in the name does not cancel the one that escapes the bracket.
    EXPECT_NE(text.find("model \\<img"), std::string::npos) << text;
    EXPECT_NE(text.find("\n- \\\\\\<img"), std::string::npos) << text;
    for (size_t at = 0; (at = text.find('<', at)) != std::string::npos; ++at) EXPECT_EQ(text[at - 1], '\\');
    table.rows.resize(1);
  }
}

TEST(Table, MarkdownEscapesBars) {
  const std::string text = to_markdown(small_table());
  EXPECT_NE(text.find("| name | step time (ms) |\n| :--- | ---: |\n"), std::string::npos) << text;
  EXPECT_NE(text.find("| c \\| d | - |\n"), std::string::npos) << text;
  EXPECT_NE(text.find("Every row: model gpt2.\n"), std::string::npos) << text;
}

TEST(Cells, DifferenceFromALawOfZeroDoesNotHide) {
  EXPECT_EQ(cells::difference(110, 100).text, "+10");
  EXPECT_EQ(cells::difference(99.9, 100).text, "-0.10");
  EXPECT_EQ(cells::difference(0, 0).text, "0");
  EXPECT_EQ(cells::difference(8, 0).text, "not 0");
  EXPECT_EQ(cells::difference(NAN, 100).text, "-");
}

// The text of a choice has only the options that differ from the defaults. The value has all of them, and the
// explanations list the full choice once.
TEST(Columns, OfChoicesAreBrief) {
  const std::vector<Choice> rows = {resolved_strategy("ddp"), resolved_strategy("ddp"),
                                    resolved_strategy("fsdp(shard=gradients)")};
  const Table table = make_table<Choice>(
      "t", "T", {{choice_column("strategy"), [](const Choice& c) { return choice_cell("strategy", c); }}},
      rows);
  EXPECT_EQ(table.rows[0][0].text, "ddp");
  EXPECT_EQ(table.rows[0][0].value, to_text(rows[0]));
  EXPECT_EQ(table.rows[2][0].text, "fsdp(shard=gradients)");
  std::vector<Table> tables = {table, table};
  say_names_once(tables);
  EXPECT_EQ(all_explanations(tables[0]), std::vector<std::string>{"With every option: " + to_text(rows[0]) +
                                                                  "; " + to_text(rows[2]) + "."});
  EXPECT_TRUE(all_explanations(tables[1]).empty());
}

TEST(Cells, PercentagesStayReadable) {
  EXPECT_EQ(cells::percent(-0.0004).text, "0.0");
  EXPECT_EQ(cells::percent(-0.0006).text, "-0.1");
  EXPECT_EQ(cells::percent(9.994).text, "999.4");
  EXPECT_EQ(cells::percent(23387.346).text, "2,338,735");
  EXPECT_EQ(cells::percent(1e300).text, "1.000e+302");
  EXPECT_EQ(cells::difference(1e6, 2).text, "+49,999,900");
  EXPECT_EQ(cells::difference(3, 2).text, "+50");
}

TEST(TableNames, ThoseThatPeopleGuess) {
  EXPECT_TRUE(is_called("predicted_layouts", "layouts"));
  EXPECT_TRUE(is_called("memory.largest", "largest_batch"));
  EXPECT_FALSE(is_called("memory", "largest_batch"));
  EXPECT_TRUE(is_called("scaling_laws", "amdahl"));
  EXPECT_TRUE(is_called("memory", "memory"));
  EXPECT_FALSE(is_called("memory", "traffic"));
  EXPECT_TRUE(is_called("collectives.all_reduce_2", "all_reduce"));
  EXPECT_TRUE(is_called("collectives.all_reduce_2", "collectives"));
  EXPECT_FALSE(is_called("collectives.all_reduce_2", "reduce"));
  EXPECT_FALSE(is_called("collective_fits", "collectives"));
  EXPECT_EQ(with_other_names("predicted_layouts"), "predicted_layouts (layouts, layout, 3d)");
  EXPECT_EQ(with_other_names("scaling"), "scaling (weak, strong, karp_flatt, speedup, efficiency)");
  EXPECT_EQ(with_other_names("settings"), "settings");
}

TEST(TableNames, OnesThatAnswerOneQuestionShareAName) {
  for (const char* part : {"scaling.weak", "scaling.strong", "scaling.limits"}) {
    EXPECT_EQ(name_of_table(part), "scaling");
    EXPECT_TRUE(is_called(part, "scaling")) << part;
    EXPECT_TRUE(is_called(part, part));
  }
  EXPECT_FALSE(is_called("scaling.strong", "scaling.weak"));
  EXPECT_FALSE(is_called("scaling_laws", "scaling"));
  EXPECT_EQ(name_of_table("scaling_laws"), "scaling_laws");
  EXPECT_LE(report_table_names().size(), 20u);
}

// Whoever gives a name of 0.1.0 is told where its answer is.
TEST(TableNames, OldOnesHaveAPlaceNow) {
  const std::vector<std::string> names = report_table_names();
  for (const char* old :
       {"costs", "accumulation", "optimizations", "communication", "gap", "sequences", "largest",
        "weak_scaling", "strong_scaling", "efficiency_limits", "fit_quality", "sustained_devices",
        "sustained_ranks", "rates", "held_out_collectives", "findings", "missing", "not_ok"}) {
    const std::string now = table_now(old);
    EXPECT_NE(std::find(names.begin(), names.end(), name_of_table(now)), names.end()) << old << ": " << now;
    EXPECT_EQ(std::find(names.begin(), names.end(), old), names.end()) << old;
  }
  EXPECT_EQ(table_now("collective_all_reduce_16"), "collectives.all_reduce_16");
  for (const std::string& name : names) EXPECT_EQ(table_now(name), "");
}

// A text from a file is printed in one line, and control characters for terminals are escaped.
TEST(Table, CellsOfFilesAreOneLine) {
  Table table = small_table();
  table.rows.front()[1].text = "red \x1b[31m\nrow";
  EXPECT_NE(to_text(table).find("red \\x1b[31m\\x0arow"), std::string::npos) << to_text(table);
  EXPECT_NE(to_markdown(table).find("red \\\\x1b[31m\\\\x0arow"), std::string::npos) << to_markdown(table);
}

}  // namespace
}  // namespace shardmark
