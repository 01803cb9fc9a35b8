// How a command outputs its tables: as text, Markdown, CSV or JSON, by the same flags in every command.
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
  bool explain = false;                  // what the columns mean, below each table
  bool all = false;                      // every table, with that
  std::vector<std::string> inputs = {};  // that the tables were made from: nothing is written over them

  // Whether no flag asks for certain tables, or for another form than text.
  bool is_default() const { return only.empty() && csv.empty() && !json && !markdown && !all; }
  Explanations explanations() const { return explain || all ? Explanations::shown : Explanations::left_out; }
};

// The flags of tables; what asks for something else excludes them.
inline constexpr const char* kTableFlags[] = {"--table", "--all",  "--explain",
                                              "--csv",   "--json", "--markdown"};
// --table, --explain, --all, --csv, --json, --markdown, --overwrite. Call it with an output that outlives the
// parsing.
void add_table_flags(CLI::App& command, TableOutput& output);

// Leaves those that --table names; all where it names none. UsageError: there is no such table.
void keep_only(std::vector<Table>& tables, const std::vector<std::string>& keys);
// To the standard output, or into the directory of --csv. UsageError: --table names none of them.
// first: keys of the tables that are printed where no flag asks for any; the others are listed by name.
void write_tables(std::vector<Table> tables, const TableOutput& output,
                  const std::vector<std::string>& first = {});
// An overview, the tables with these keys, then the names of all; as wide as the terminal, in colour where
// there is one.
void write_first_screen(Overview overview, const std::vector<Table>& tables, const TableOutput& output,
                        const std::vector<std::string>& shown = {});
// "Tables, each with --table NAME (...), or --all: strategies, phases ...", in lines.
std::string list_of_tables(const std::vector<Table>& tables, size_t width = 100);

// May the path be written? UsageError: it is an input, by whatever name or link, or belongs to one (a study
// has a journal and samples); a file is there and --overwrite was not given; or what is there is neither a
// file nor a stream. Nothing but regular files is ever replaced: a pipe or terminal is written to.
void require_free(const std::filesystem::path& path, bool overwrite, const std::vector<std::string>& inputs);
void add_overwrite_flag(CLI::App& command, bool& overwrite);

// One path for all names of a file (links, ./x, x), also of one that is still a journal.
std::filesystem::path same_file(const std::string& path);
// Each file once, though a pattern may name it twice (results/quick.h5 links the newest study).
std::vector<StudyData> read_studies(const std::vector<std::string>& paths, Load load = Load::everything);

}  // namespace shardmark
