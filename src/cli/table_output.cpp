// Renders and writes tables for commands.
#include "cli/table_output.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>

#include "analysis/tables/names.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/candidates.h"
#include "schema/file.h"
#include "schema/journal.h"

namespace shardmark {
namespace {

// All files of an input: a study, its journal and its samples. The input may be the journal itself, and the
// study need not exist.
std::vector<std::string> files_of(const std::string& input) {
  std::string study = follow_links(input);
  if (study.ends_with(journal_path(""))) study.resize(study.size() - journal_path("").size());
  return {input, study, journal_path(study), samples_path(study)};
}

const char* kind_of(mode_t mode) { return S_ISDIR(mode) ? "folder" : S_ISBLK(mode) ? "disk" : "socket"; }

void write_csv(const std::vector<Table>& tables, const std::filesystem::path& directory,
               const TableOutput& output) {
  for (const Table& table : tables)
    require_free(directory / (table.key + ".csv"), output.overwrite, output.inputs);
  make_directory(directory, "--csv");
  for (const Table& table : tables) {
    const std::filesystem::path path = directory / (table.key + ".csv");
    write_whole(path, "name a writable directory: --csv DIR, or --csv -",
                [&](std::ostream& out) { out << to_csv(table); });
    print(path.string() + "\n");
  }
}

// On the standard output, each of several CSV tables has a line "# key" above it.
std::string rendered(const Table& table, const TableOutput& output, bool one_of_several) {
  if (output.csv == "-") return (one_of_several ? "# " + table.key + "\r\n" : "") + to_csv(table);
  return output.markdown ? to_markdown(table) : to_text(table, output.explanations());
}

// "strategies, phases, ..., collectives": tables that share a name follow each other.
std::string names_of(const std::vector<Table>& tables, std::string (*text)(std::string_view name)) {
  std::vector<std::string> names;
  for (const Table& table : tables)
    if (std::string name = text(name_of_table(table.key)); names.empty() || names.back() != name)
      names.push_back(std::move(name));
  return fmt::format("{}", fmt::join(names, ", "));
}

// Uses colour only on a terminal, and only if the user did not turn it off (https://no-color.org).
TextStyle style_of_standard_output() {
  TextStyle style;
  if (isatty(STDOUT_FILENO) != 1) return style;
  const char* const no_color = std::getenv("NO_COLOR");
  style.color = no_color == nullptr || *no_color == '\0';
  struct winsize size = {};
  constexpr size_t kLeast = 60, kMost = 160;
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    style.width = std::clamp<size_t>(size.ws_col, kLeast, kMost);
  return style;
}

}  // namespace

// The tables come in the order in which --table names them. A name may mean several tables.
void keep_only(std::vector<Table>& tables, const std::vector<std::string>& keys) {
  if (keys.empty()) return;
  std::vector<Table> kept;
  for (const std::string& word : keys) {
    const auto is_meant = [&](const Table& table) { return is_called(table.key, word); };
    if (std::none_of(tables.begin(), tables.end(), is_meant))
      throw UsageError(fmt::format("--table {}: no such table here; there are: {}", word,
                                   names_of(tables, with_other_names)));
    std::copy_if(tables.begin(), tables.end(), std::back_inserter(kept), is_meant);
  }
  tables = std::move(kept);
}

void require_free(const std::filesystem::path& path, bool overwrite, const std::vector<std::string>& inputs) {
  struct stat there;
  if (::stat(path.c_str(), &there) != 0) return;
  // An input is recognised by its device and inode, so under any name and through any link. It is never
  // replaced, not even with --overwrite.
  for (const std::string& input : inputs)
    for (const std::string& file : files_of(input)) {
      struct stat read;
      if (::stat(file.c_str(), &read) == 0 && read.st_dev == there.st_dev && read.st_ino == there.st_ino)
        throw UsageError(path.string() + " is " + file + ", which is read here; name another place");
    }
  if (S_ISCHR(there.st_mode) || S_ISFIFO(there.st_mode)) return;
  if (!S_ISREG(there.st_mode))
    throw UsageError(path.string() + " is a " + kind_of(there.st_mode) + ", not a file; name another place");
  if (!overwrite)
    throw UsageError(path.string() + " exists; name another place, or replace it with --overwrite");
}

void add_overwrite_flag(CLI::App& command, bool& overwrite) {
  command.add_flag("--overwrite", overwrite, "replace files that are there already");
}

void add_table_flags(CLI::App& command, TableOutput& output) {
  auto* table = command.add_option(
      "--table", output.only,
      "only these tables, such as strategies, scaling.weak or amdahl (any other name lists all)");
  offer(table, {});
  command.add_flag("--all", output.all, "every table, with what its columns mean")
      ->excludes(command.get_option("--table"));
  auto* explain = command.add_flag("--explain", output.explain, "what the columns mean, below each table");
  auto* csv = command
                  .add_option("--csv", output.csv,
                              "write each table to DIR/<key>.csv, or all to the standard output: -")
                  ->excludes(explain);
  auto* json = command.add_flag("--json", output.json, "one JSON document")->excludes(csv);
  add_overwrite_flag(command, output.overwrite);
  command.add_flag("--markdown", output.markdown, "tables in Markdown")->excludes(csv)->excludes(json);
}

std::string list_of_tables(const std::vector<Table>& tables, size_t width) {
  const std::string list = "Tables, each with --table NAME (--explain: what its columns mean), or --all: " +
                           names_of(tables, [](std::string_view name) { return std::string(name); }) + ".";
  std::string text;
  for (const std::string& line : wrapped(list, width)) text += line + "\n";
  return text;
}

void write_first_screen(Overview overview, const std::vector<Table>& tables, const TableOutput& output,
                        const std::vector<std::string>& shown) {
  const TextStyle style = style_of_standard_output();
  std::string text = to_text(std::move(overview), style, output.explanations()) + "\n";
  for (const Table& table : tables)
    if (std::count(shown.begin(), shown.end(), table.key) > 0)
      text += to_text(table, output.explanations()) + "\n";
  print_data(text + list_of_tables(tables, style.width));
}

void write_tables(std::vector<Table> tables, const TableOutput& output,
                  const std::vector<std::string>& first) {
  // No flag selects tables or a format: the tables in `first` are printed, and all are listed by name.
  if (!first.empty() && output.is_default()) {
    std::string text;
    for (const Table& table : tables)
      if (std::count(first.begin(), first.end(), table.key) > 0)
        text += to_text(table, output.explanations()) + "\n";
    return print(text + list_of_tables(tables));
  }
  keep_only(tables, output.only);
  say_names_once(tables);
  if (output.json) {
    auto document = nlohmann::ordered_json{{"tables", nlohmann::ordered_json::array()}};
    for (const Table& table : tables) document["tables"].push_back(to_json(table));
    print_data(document.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  } else if (!output.csv.empty() && output.csv != "-") {
    write_csv(tables, output.csv, output);
  } else {
    std::string text;
    for (const Table& table : tables)
      text += (text.empty() ? "" : "\n") + rendered(table, output, tables.size() > 1);
    if (output.csv == "-")
      print_data(text);
    else
      print(text);
  }
}

std::filesystem::path same_file(const std::string& path) {
  std::error_code loop;
  // The part of the path that exists is resolved, and the rest is appended. A loop of links cannot be
  // resolved.
  const std::filesystem::path whole = std::filesystem::weakly_canonical(path, loop);
  return loop ? std::filesystem::path(path) : std::filesystem::absolute(whole);
}

std::vector<StudyData> read_studies(const std::vector<std::string>& paths, Load load) {
  std::vector<StudyData> studies;
  std::set<std::filesystem::path> known;
  for (const std::string& path : paths)
    if (known.insert(same_file(path)).second) studies.push_back(read_study(path, load));
  return studies;
}

}  // namespace shardmark
