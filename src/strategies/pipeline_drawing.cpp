// Draws each action as a cell of text whose width is proportional to its duration.
#include "strategies/pipeline_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"

namespace shardmark::strategies {
namespace {

constexpr double kWidestMean = 12;   // most columns that an action takes on average
constexpr size_t kBreakBefore = 12;  // a line may end this many columns earlier

bool is_gradient_of_input(Pass pass) { return pass == Pass::backward || pass == Pass::backward_input; }

// For example "3 ", "<3-", "w3 ", or "3b" for the second chunk. A label never ends with a digit, because
// another label may follow.
std::string label_of(const PipelineAction& action) {
  std::string label = is_gradient_of_input(action.pass)      ? "<"
                      : action.pass == Pass::backward_weight ? "w"
                                                             : "";
  label += std::to_string(action.micro_batch);
  if (action.chunk > 0) return label + chunk_letter(action.chunk);
  return label + (is_gradient_of_input(action.pass) ? '-' : ' ');
}

// One row of the drawing: its text, and the columns at which a line must not be broken.
struct TimelineRow {
  std::string cells;
  std::vector<bool> in_label;  // [column]
};

// The number of columns per second that gives every label enough room. Where durations differ much, it is
// limited, and the labels of short actions are cut off.
double columns_per_second(const PipelineTimeline& timeline) {
  double columns = 0, sum_s = 0, num_actions = 0;
  for (const auto& rank : timeline.ranks)
    for (const TimedAction& timed : rank) {
      const double length_s = timed.end_s - timed.begin_s;
      const auto label = static_cast<double>(label_of(timed.action).size());
      if (length_s > 0) columns = std::max(columns, label / length_s);
      sum_s += length_s;
      ++num_actions;
    }
  return sum_s > 0 ? std::min(columns, kWidestMean * num_actions / sum_s) : 0;
}

TimelineRow row_of(const std::vector<TimedAction>& actions, double scale, size_t columns) {
  TimelineRow row{std::string(columns, '.'), std::vector<bool>(columns)};
  for (const TimedAction& timed : actions) {
    const auto begin = static_cast<size_t>(std::llround(timed.begin_s * scale)),
               end = std::min(columns, static_cast<size_t>(std::llround(timed.end_s * scale)));
    if (end <= begin) continue;
    std::string cell = label_of(timed.action);
    for (size_t i = begin + 1; i < std::min(end, begin + cell.size()); ++i) row.in_label[i] = true;
    cell.resize(end - begin, is_gradient_of_input(timed.action.pass) ? '-' : ' ');
    row.cells.replace(begin, end - begin, cell);
  }
  return row;
}

// The column at which a line that begins at `begin` ends: the last one that cuts no label, if there is one.
size_t end_of_line(const std::vector<TimelineRow>& rows, size_t begin, size_t width) {
  const size_t columns = rows.front().cells.size(), last = begin + width;
  if (last >= columns) return columns;
  for (size_t end = last; end > begin && end + kBreakBefore > last; --end)
    if (std::none_of(rows.begin(), rows.end(), [&](const TimelineRow& row) { return row.in_label[end]; }))
      return end;
  return last;
}

std::string legend(const PipelineTimeline& timeline) {
  bool is_whole = false, is_split = false;
  for (const auto& rank : timeline.ranks)
    for (const TimedAction& timed : rank) {
      is_whole |= timed.action.pass == Pass::backward;
      is_split |= timed.action.pass == Pass::backward_input;
    }
  std::string text = "0: forward of micro-batch 0";
  if (is_whole) text += ", <0: its backward";
  if (is_split) text += ", <0: its backward_input, w0: its backward_weight";
  if (timeline.chunks > 1) {
    text += ", 0b: through the second part of a stage";
    if (timeline.chunks > 2) text += fmt::format(", ... 0{}", chunk_letter(timeline.chunks - 1));
  }
  return text + "\n";
}

}  // namespace

std::string chunk_letter(int64_t chunk) {
  return chunk < 26 ? std::string(1, static_cast<char>('a' + chunk)) : fmt::format("({})", chunk);
}

std::string summary(const PipelineTimeline& timeline) {
  std::string in_flight;
  for (const int64_t most : timeline.most_in_flight)
    in_flight += (in_flight.empty() ? "" : ", ") + std::to_string(most);
  return fmt::format(
      "{}, bubble {:.1f} %, in flight {}{}", format_seconds(timeline.length_s), 100 * timeline.idle_share(),
      in_flight,
      timeline.chunks > 1 ? fmt::format(" (chunks of which a stage has {})", timeline.chunks) : "");
}

std::string draw_text(const PipelineTimeline& timeline, size_t width) {
  const double scale = columns_per_second(timeline);
  const auto columns = static_cast<size_t>(std::llround(timeline.length_s * scale));
  if (columns == 0) return "";
  std::vector<TimelineRow> rows;
  for (const auto& rank : timeline.ranks) rows.push_back(row_of(rank, scale, columns));
  const size_t names = fmt::format("stage {} |", rows.size() - 1).size();
  // All lines have about the same length, and each may end a little earlier.
  const size_t most = std::max(width, names + 2 * kBreakBefore) - names - 1,
               lines = (columns + most - 1) / most;
  const size_t of_line = std::min(most, (columns + lines - 1) / lines + kBreakBefore);
  std::string text;
  for (size_t begin = 0, end = 0; begin < columns; begin = end) {
    end = end_of_line(rows, begin, of_line);
    if (begin > 0) text += "\n";
    for (size_t rank = 0; rank < rows.size(); ++rank)
      text += fmt::format("{:<{}}|{}|\n", fmt::format("stage {}", rank), names - 1,
                          rows[rank].cells.substr(begin, end - begin));
  }
  return text + legend(timeline);
}

}  // namespace shardmark::strategies
