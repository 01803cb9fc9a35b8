// Writes the tables of a command as text, Markdown, CSV or JSON; every command has the same flags for it.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "analysis/overview/overview.h"
#include "analysis/table/table.h"
#include "base/log.h"
#include "schema/study.h"

namespace shardmark {

struct TableOutput {
  std::vector<std::string> only;
  std::string csv;
  bool json = false;
  bool markdown = false;
  bool overwrite = false;
  bool explain = false;  // add the meaning of columns below each table
  bool all = false;      // print every table, with explanations
  // The studies that the tables were made from, which must not be overwritten.
  std::vector<std::string> inputs = {};

  // Whether no flag selects tables or a format other than text.
  bool is_default() const { return only.empty() && csv.empty() && !json && !markdown && !all; }
  Explanations explanations() const { return explain || all ? Explanations::shown : Explanations::left_out; }
};

// The flags of tables. A flag that asks for another kind of output excludes them.
inline constexpr const char* kTableFlags[] = {"--table", "--all",  "--explain",
                                              "--csv",   "--json", "--markdown"};
// Adds --table, --explain, --all, --csv, --json, --markdown and --overwrite. `output` must outlive the
// parsing.
void add_table_flags(CLI::App& command, TableOutput& output);

// Keeps the tables that --table names, or all if it names none. Throws UsageError if there is no such table.
void keep_only(std::vector<Table>& tables, const std::vector<std::string>& keys);
// Writes the tables to the standard output, or into the directory of --csv. `first` has the keys of the
// tables that are printed if no flag selects any; then all are listed by name. Throws UsageError if --table
// names none of them.
void write_tables(std::vector<Table> tables, const TableOutput& output,
                  const std::vector<std::string>& first = {});
// Prints an overview, the tables whose keys are in `shown`, and then the names of all tables. On a terminal
// it is as wide as the terminal, and coloured.
void write_first_screen(Overview overview, const std::vector<Table>& tables, const TableOutput& output,
                        const std::vector<std::string>& shown = {});
// The list of tables in lines: "Tables, each with --table NAME (...), or --all: strategies, phases ...".
std::string list_of_tables(const std::vector<Table>& tables, size_t width = 100);

// Throws UsageError if the path may not be written: it is an input or belongs to one (a study has a journal
// and samples), under any name or link; it exists and --overwrite was not given; or it is neither a file nor
// a stream. Only regular files are replaced; a pipe or terminal is written to.
void require_free(const std::filesystem::path& path, bool overwrite, const std::vector<std::string>& inputs);
void add_overwrite_flag(CLI::App& command, bool& overwrite);

// The same path for all names of a file (links, ./x, x), even if it does not exist yet.
std::filesystem::path same_file(const std::string& path);
// Reads each file once, even if a pattern names it twice (results/quick.h5 is a link to the newest study).
std::vector<StudyData> read_studies(const std::vector<std::string>& paths, Load load = Load::everything);

}  // namespace shardmark
