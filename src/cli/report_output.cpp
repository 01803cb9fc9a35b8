// See report_output.h.
#include "cli/report_output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "analysis/overview/overview.h"
#include "analysis/quality/sustained.h"
#include "analysis/tables/tables.h"

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

}  // namespace

void write_report(const std::vector<StudyData>& studies, const ReportInputs& inputs,
                  const TableOutput& output) {
  std::vector<Table> tables = make_report(studies, inputs);
  if (!output.is_default()) return write_tables(std::move(tables), output);
  const MergedPoints points = merge_repeats(studies);
  const TextStyle style = style_of_standard_output();
  std::string text = to_text(overview_of(studies, points, unfinished_runs(studies), scaling_series(points)),
                             style, output.explanations()) +
                     "\n";
  text += list_of_tables(tables, style.width);
  print_data(text);
}

}  // namespace shardmark
