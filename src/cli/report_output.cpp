// See report_output.h.
#include "cli/report_output.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "analysis/overview/overview.h"
#include "analysis/sustained.h"
#include "analysis/table_names.h"
#include "analysis/tables.h"
#include "base/text.h"

namespace shardmark {
namespace {

// Colour only where a terminal shows it, and nobody asked for none (https://no-color.org).
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

// "strategies, phases, ..., collectives": the tables of single collectives by the one name that they share.
std::string names_of(const std::vector<Table>& tables) {
  std::vector<std::string> names;
  for (const Table& table : tables) {
    const std::string name = table.key.starts_with("collective_") && is_called(table.key, "collectives")
                                 ? "collectives"
                                 : table.key;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

void write_report(const std::vector<StudyData>& studies, const ReportInputs& inputs,
                  const TableOutput& output) {
  std::vector<Table> tables = make_report(studies, inputs);
  if (!output.is_default())
    return write_tables(std::move(tables), output,
                        output.all || output.explain ? Notes::shown : Notes::left_out);
  const MergedPoints points = merge_repeats(studies);
  const TextStyle style = style_of_standard_output();
  std::string text =
      to_text(overview_of(studies, points, unfinished_runs(studies), scaling_series(points)), style) + "\n";
  const std::string list =
      "Tables, each with --table NAME (--explain: what its columns mean), or --all: " + names_of(tables) +
      ".";
  for (const std::string& line : wrapped(list, style.width)) text += line + "\n";
  print_data(text);
}

}  // namespace shardmark
