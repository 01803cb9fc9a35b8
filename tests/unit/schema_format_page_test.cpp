// results/FORMAT.md documents the contents of a study. It is generated from the table of fields.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <type_traits>

#include "schema/fields.h"
#include "schema/stored.h"

namespace shardmark {
namespace {

template <class T>
std::string type_name() {
  if constexpr (std::is_same_v<T, std::string>) return "text";
  if constexpr (std::is_same_v<T, int64_t>) return "int64";
  if constexpr (std::is_same_v<T, double>) return "float64";
  if constexpr (std::is_same_v<T, Flag>) return "bool (int8)";
  if constexpr (std::is_same_v<T, std::vector<std::string>>) return "list of texts";
  if constexpr (std::is_same_v<T, JsonObject>) return "JSON text";
}

std::string row(std::string_view name, std::string_view type, std::string_view unit,
                std::string_view meaning) {
  return fmt::format("| `{}` | {} | {} | {} |\n", name, type, unit, meaning);
}

constexpr const char* kHeading = "| name | type | unit | meaning |\n|---|---|---|---|\n";

std::string page() {
  std::string text = fmt::format(
      "# What a study holds, schema version {}.{}\n\n"
      "A study is an HDF5 file. This page is made from the field table, `src/schema/fields.h`, and a test "
      "compares them. A reader "
      "takes any\nfile of its major version: what an older one lacks reads as \"not measured\", what a newer "
      "one adds is "
      "ignored.\n\n"
      "## Attributes of the file\n\n",
      kSchemaMajor, kSchemaMinor);
  text += kHeading;
  text += row("creator", "text", "", "`shardmark`");
  text += row("schema_version", "text", "", "major.minor of the program that wrote the file");
  Environment environment;
  const auto fact = [&](std::string_view name, std::string_view unit, std::string_view meaning,
                        auto& member) {
    text += row(name, type_name<std::decay_t<decltype(member)>>(), unit, meaning);
  };
  visit_provenance(environment, fact);
  text += "\n## /environment/<name>\n\nOne dataset each; attributes `unit` and `description`.\n\n";
  text += kHeading;
  visit_environment(environment, fact);
  text +=
      "\n## /points/<name>\n\nOne dataset each, with a row for each point; attributes `unit` and "
      "`description`. NaN: not "
      "measured. A model, data\nsource, strategy, optimizer or schedule is written as `name` or "
      "`name(option=value, ...)`. A text that cannot be read so is\na name as a whole: `GPT-3 (175B)` in an "
      "imported study.\n\n";
  text += kHeading;
  Record record;
  visit_fields(record,
               [&](std::string_view name, std::string_view unit, std::string_view meaning, auto& member) {
                 text += row(name, type_name<std::decay_t<decltype(to_stored(member))>>(), unit, meaning);
               });
  text +=
      "\n## /samples/<name>/\n\nOne group each: `values` (float64) of all points one after another, "
      "`offset`, `length` and "
      "`ranks` (int64) of each\npoint; [rows, columns] as the meaning says, row by row.\n\n";
  text += kHeading;
  for (const SeriesInfo& series : kSeries)
    text += row(series.name, "float64", series.unit, series.description);
  return text;
}

TEST(FormatPage, IsWhatTheFieldTableSays) {
  std::ifstream file(SHARDMARK_SOURCE_DIR "/results/FORMAT.md");
  std::stringstream kept;
  kept << file.rdbuf();
  const std::string made = page();
  if (kept.str() != made) std::ofstream("/tmp/shardmark-format.md") << made;
  EXPECT_TRUE(kept.str() == made) << "copy /tmp/shardmark-format.md to results/FORMAT.md";
}

}  // namespace
}  // namespace shardmark
