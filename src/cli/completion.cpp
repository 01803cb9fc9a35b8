// shardmark --completion: prints a script for bash or zsh that completes commands, flags and their values.
// Everything is read from the definitions behind --help; completion_scripts.h has the part that does not
// change.
#include "cli/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/log.h"
#include "cli/candidates.h"
#include "cli/completion_scripts.h"
#include "cli/find_suite.h"

namespace shardmark {
namespace {

// Makes a text one field of a line for the scripts: replaces tabs and line breaks.
std::string one_field(std::string text) {
  for (char& c : text)
    if (c == '\t' || c == '\n') c = ' ';
  return text.empty() ? "-" : text;
}

// What may follow the option: "files", "suites", "nothing", "run" (flags of run) or "= word word".
std::string values_of(const CLI::Option& option) {
  if (const Candidates* known = offered(&option)) {
    if (known->kind == Candidates::Kind::suites) return "suites";
    if (known->kind == Candidates::Kind::run_flags) return "run";
    return known->words ? fmt::format("= {}", fmt::join(known->words(), " ")) : "nothing";
  }
  return option.get_type_name().starts_with("TEXT") ? "files" : "nothing";
}

// The names of an option: "-o,--output", or "<suite>" for a positional argument.
std::string names_of(const CLI::Option& option) {
  if (!option.nonpositional()) return "<" + option.get_name() + ">";
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return fmt::format("{}", fmt::join(names, ","));
}

// A line for the scripts: names, number of values (0, 1, +), kind of values, description.
std::string row_of(const CLI::Option& option) {
  // A flag for which CLI11 allows no extra arguments takes one value, and is repeated for each further one.
  const bool is_list = option.get_items_expected_max() > 1 && option.get_allow_extra_args();
  const char* count = option.get_items_expected_max() == 0 ? "0" : is_list ? "+" : "1";
  return fmt::format("{}\t{}\t{}\t{}\n", names_of(option), count, values_of(option),
                     one_field(option.get_description()));
}

std::string rows_of(CLI::App& app) {
  std::string rows;
  for (const CLI::Option* option : app.get_options()) rows += row_of(*option);
  return rows;
}

std::string case_of(const std::string& command, const std::string& rows) {
  return fmt::format("    '{}') cat <<'END'\n{}END\n    ;;\n", command, rows);
}

std::string installed_names() {
  std::vector<std::string> names;
  std::error_code none;  // a missing folder has no suites
  for (const auto& file : std::filesystem::directory_iterator(installed_suites(), none))
    if (file.path().extension() == ".yaml") names.push_back(file.path().stem());
  std::sort(names.begin(), names.end());
  return fmt::format("{}", fmt::join(names, " "));
}

}  // namespace

const std::vector<std::string>& shells_with_completion() {
  static const std::vector<std::string> shells = {"bash", "zsh"};
  return shells;
}

void print_completion(CLI::App& program, const std::string& shell) {
  std::string commands, flags = case_of("", rows_of(program));
  for (CLI::App* command : program.get_subcommands({})) {
    commands += command->get_name() + "\t" + one_field(command->get_description()) + "\n";
    flags += case_of(command->get_name(), rows_of(*command));
  }
  const bool is_zsh = shell == "zsh";
  print_data(fmt::format("{}# Completion of shardmark in {}, written by `shardmark --completion {}`.\n",
                         is_zsh ? "#compdef shardmark\n" : "", shell, shell));
  print_data(fmt::format("_shardmark_suites='{}'\n_shardmark_commands() {{\n  cat <<'END'\n{}END\n}}\n",
                         installed_names(), commands));
  print_data(fmt::format("_shardmark_flags() {{\n  case $1 in\n{}  esac\n}}\n", flags));
  print_data(std::string(kCandidatesScript) + (is_zsh ? kZshScript : kBashScript));
}

}  // namespace shardmark
