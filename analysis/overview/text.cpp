// The overview for a terminal.
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/overview/overview.h"
#include "analysis/table/columns.h"

namespace shardmark {
namespace {

constexpr size_t kIndent = 2;         // of rows below their setting
constexpr size_t kMostName = 44;      // of a strategy's name with its options
constexpr size_t kMostPerCause = 2;   // lines
constexpr size_t kMostLines = 34;     // of all answers together
constexpr size_t kMostTraining = 20;  // of the first of them

// Escape sequences of ECMA-48, around text that is fit to be shown.
std::string styled(const std::string& text, const char* code, const TextStyle& style) {
  return style.color ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
}
std::string bold(const std::string& text, const TextStyle& style) { return styled(text, "1", style); }

std::string shown(const Cell& cell) { return printable(cell.text, ""); }

std::string shortened(const std::string& text, size_t most) {
  return text.size() <= most ? text : text.substr(0, most - 3) + "...";
}

class Columns {
 public:
  explicit Columns(const OverviewTable& table) : table_(table) {
    for (const size_t c : columns_with_values(table)) {
      const Column& column = table.columns[c];
      size_t width = std::max(column.name.size(), column.unit.size());
      for (const OverviewGroup& group : table.groups)
        for (const auto& row : group.rows)
          width = std::max(
              width, c == 0 ? std::min(kMostName, shown(row[c]).size()) + kIndent : shown(row[c]).size());
      columns_.push_back({c, width});
    }
  }

  std::string heading(const TextStyle& style) const {
    std::string names, units;
    for (const auto& [c, width] : columns_) {
      names +=
          c == 0 ? fmt::format("{:<{}}", "", width) : fmt::format("  {:>{}}", table_.columns[c].name, width);
      units +=
          c == 0 ? fmt::format("{:<{}}", "", width) : fmt::format("  {:>{}}", table_.columns[c].unit, width);
    }
    units.erase(units.find_last_not_of(' ') + 1);
    // The title stands before the names where there is room.
    const size_t room = names.find_first_not_of(' ');
    const bool fits = room != std::string::npos && table_.title.size() + 1 < room;
    if (fits) names = bold(table_.title, style) + names.substr(table_.title.size());
    return (fits ? "" : bold(table_.title, style) + "\n") + names + "\n" +
           (units.empty() ? "" : units + "\n");
  }

  std::string row(const std::vector<Cell>& cells, const TextStyle& style) const {
    std::string line;
    for (const auto& [c, width] : columns_) {
      const std::string text = shown(cells[c]);
      line += c == 0 ? fmt::format("{:<{}}", std::string(kIndent, ' ') + shortened(text, kMostName), width)
                     : "  " + std::string(width - text.size(), ' ') + in_color(text, style);
    }
    return line + "\n";
  }

 private:
  static std::string in_color(const std::string& text, const TextStyle& style) {
    if (text == "fastest") return styled(text, "32", style);
    if (text == "AMBIGUOUS") return styled(text, "33", style);
    if (text == "unreliable" || text.ends_with("?")) return styled(text, "33", style);
    if (text.starts_with("wrong")) return styled(text, "31", style);
    return text;
  }

  struct Placed {
    size_t column;
    size_t width;
  };
  const OverviewTable& table_;
  std::vector<Placed> columns_;  // those that hold a value
};

std::string notes_text(const OverviewTable& table, const TextStyle& style) {
  std::string text;
  for (const std::string& note : table.notes)
    for (const std::string& line : wrapped(note, style.width)) text += line + "\n";
  return text;
}

std::string text_of(const OverviewTable& table, const TextStyle& style) {
  const Columns columns(table);
  std::string text = columns.heading(style);
  for (const OverviewGroup& group : table.groups) {
    if (!group.setting.empty()) text += shortened(printable(group.setting, ""), style.width) + "\n";
    for (const auto& row : group.rows) text += columns.row(row, style);
    if (group.num_left_out > 0) text += fmt::format("  and {} more\n", group.num_left_out);
  }
  if (table.num_left_out > 0)
    text += fmt::format("and {} more setting{}: --table {}\n", table.num_left_out,
                        table.num_left_out == 1 ? "" : "s", table.key);
  return text + notes_text(table, style);
}

std::string definitions_text(const OverviewTable& table, const TextStyle& style) {
  std::vector<Column> columns;
  for (const size_t c : columns_with_values(table)) columns.push_back(table.columns[c]);
  std::string text;
  std::vector<std::string> notes;
  std::set<std::string> names;
  for (const Definition& definition : definitions_of(columns))
    notes.push_back(fmt::format("{}: {}", definition.names, definition.text));
  if (table.columns.front().is_brief)
    for (const OverviewGroup& group : table.groups)
      for (const auto& row : group.rows) add_whole_name(row.front(), names);
  if (!names.empty()) notes.push_back(whole_names_note(names));
  for (const std::string& note : notes) {
    const char* indent = "* ";
    for (const std::string& line : wrapped(note, style.width - kIndent)) {
      text += indent + line + "\n";
      indent = "  ";
    }
  }
  return text;
}

std::string caution_text(const std::string& caution, const TextStyle& style) {
  const std::string line = printable(caution, "");
  std::vector<std::string> lines = wrapped(line, style.width - 2);
  if (lines.size() > kMostPerCause) {
    lines.resize(kMostPerCause);
    lines.back() = shortened(lines.back() + " ....", style.width - 2);
  }
  std::string text;
  for (size_t i = 0; i < lines.size(); ++i) text += (i == 0 ? "" : "  ") + lines[i] + "\n";
  const size_t kind = text.find(':');
  return kind == std::string::npos ? text : styled(text.substr(0, kind), "33", style) + text.substr(kind);
}

size_t num_lines(const OverviewGroup& group) {
  return group.rows.size() + (group.setting.empty() ? 0 : 1) + (group.num_left_out > 0 ? 1 : 0);
}

// Leaves out the last rows of the largest groups, then the last groups, until there are no more lines;
// returns how many are left. The notes are part of them.
size_t shorten(OverviewTable& table, size_t most_lines, const TextStyle& style) {
  const std::string notes = notes_text(table, style);
  const auto total = [&] {
    auto lines = static_cast<size_t>(std::count(notes.begin(), notes.end(), '\n'));
    for (const OverviewGroup& group : table.groups) lines += num_lines(group);
    return lines + (table.num_left_out > 0 ? 1 : 0);
  };
  while (total() > most_lines && !table.groups.empty()) {
    const auto largest = std::max_element(table.groups.begin(), table.groups.end(),
                                          [](auto& a, auto& b) { return a.rows.size() < b.rows.size(); });
    if (largest->rows.size() > 2) {
      largest->rows.pop_back();
      ++largest->num_left_out;
    } else {
      table.groups.pop_back();
      ++table.num_left_out;
    }
  }
  return total();
}

}  // namespace

std::string to_text(Overview overview, const TextStyle& style, Explanations definitions) {
  const size_t count = overview.answers.size();
  for (size_t i = 0, room = kMostLines; i < count; ++i) {  // the first answer is what the suite was made for
    const size_t most = count == 1 || (count > 2 && i + 1 == count) ? room
                        : i == 0                                    ? kMostTraining
                        : count == 2                                ? kMostLines - kMostTraining
                                                                    : room / (count - i);
    room -= std::min(room, shorten(overview.answers[i], most, style));
  }
  std::string text;
  for (const std::string& study : overview.studies)
    for (const std::string& line : wrapped(printable(study, ""), style.width)) text += line + "\n";
  for (const OverviewTable& table : overview.answers) {
    text += "\n" + text_of(table, style);
    if (definitions == Explanations::shown) text += "\n" + definitions_text(table, style);
  }
  if (!overview.standing.empty()) text += "\n" + bold("Is this good?", style) + "\n";
  for (const std::string& standing : overview.standing)
    for (const std::string& line : wrapped(printable(standing, ""), style.width)) text += line + "\n";
  if (!overview.cautions.empty()) text += "\n" + bold("Warnings", style) + "\n";
  for (const std::string& caution : overview.cautions) text += caution_text(caution, style);
  return text;
}

}  // namespace shardmark
