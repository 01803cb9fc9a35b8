// The overview for a terminal.
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/overview/overview.h"
#include "analysis/table/columns.h"

namespace shardmark {
namespace {

constexpr size_t kIndent = 2;         // of rows below their setting
constexpr size_t kLeastName = 24;     // room for the name of a row, before columns are left out
constexpr size_t kMostPerCause = 2;   // lines
constexpr size_t kMostLines = 34;     // of all answers together
constexpr size_t kMostTraining = 20;  // of the first of them

// Escape sequences of ECMA-48, around text that is fit to be shown.
std::string styled(const std::string& text, const char* code, const TextStyle& style) {
  return style.color ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
}
std::string bold(const std::string& text, const TextStyle& style) { return styled(text, "1", style); }

std::string shown(const Cell& cell) { return printable(cell.text, ""); }

// The text in lines as wide as the screen. It is wrapped, never cut off.
std::string lines_text(const std::string& text, const TextStyle& style) {
  std::string lines;
  for (const std::string& line : wrapped(printable(text, ""), style.width)) lines += line + "\n";
  return lines;
}

std::string shared_text(const OverviewTable& table, const TextStyle& style) {
  return table.shared.empty() ? "" : lines_text(table.shared, style);
}

std::string setting_text(const OverviewGroup& group, const TextStyle& style) {
  return group.setting.empty() ? "" : lines_text(group.setting, style);
}

size_t count_lines(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

// Lays a table out so that it is no wider than the screen: headings of several words are broken, then columns
// that can be missed are left out, the last first, then names that are too long get lines of their own.
class Columns {
 public:
  Columns(const OverviewTable& table, const TextStyle& style) : table_(table), style_(style) {
    std::vector<size_t> columns = columns_with_values(table);
    columns.erase(columns.begin());
    place(columns, false);
    if (width() + longest_name() > style.width) place(columns, true);
    while (width() + std::min(kLeastName, longest_name()) > style.width && columns.size() > 1) {
      columns.erase(columns.begin() + static_cast<std::ptrdiff_t>(last_to_miss(columns)));
      place(columns, true);
    }
    const size_t room = style.width > width() ? style.width - width() : 0;
    name_width_ = std::min(longest_name(), std::max(room, kLeastName));
  }

  std::string heading() const {
    size_t num_lines = 0;
    for (const Placed& column : columns_) num_lines = std::max(num_lines, column.heading.size());
    std::string text;
    for (size_t line = 0; line < num_lines; ++line) {
      std::string words(name_width_, ' ');
      for (const auto& [c, width, heading] : columns_) {
        const size_t above = num_lines - heading.size();  // empty lines above a shorter heading
        words += fmt::format("  {:>{}}", line < above ? "" : heading[line - above], width);
      }
      text += without_end(words) + "\n";
    }
    std::string units(name_width_, ' ');
    for (const auto& [c, width, heading] : columns_)
      units += fmt::format("  {:>{}}", table_.columns[c].unit, width);
    units = without_end(units);
    if (!units.empty()) text += units + "\n";
    return titled(std::move(text));
  }

  std::string row(const std::vector<Cell>& cells) const {
    const std::string name = shown(cells[0]);
    std::string text, last = name;
    if (name.size() + kIndent > name_width_) {
      for (const std::string& line : wrapped(name, style_.width - kIndent)) {
        text += std::string(kIndent, ' ') + line + "\n";
      }
      last.clear();
    }
    text += fmt::format("{:<{}}", std::string(kIndent, ' ') + last, name_width_);
    for (const auto& [c, width, heading] : columns_) {
      const std::string value = shown(cells[c]);
      text += "  " + std::string(width - value.size(), ' ') + in_color(value, style_);
    }
    return text + "\n";
  }

 private:
  struct Placed {
    size_t column;
    size_t width;
    std::vector<std::string> heading;  // its lines
  };

  void place(const std::vector<size_t>& shown_columns, bool breaks_headings) {
    columns_.clear();
    for (const size_t c : shown_columns) {
      const Column& column = table_.columns[c];
      Placed& placed = columns_.emplace_back(Placed{c, column.unit.size(), {column.name}});
      for (const OverviewGroup& group : table_.groups)
        for (const auto& row : group.rows) placed.width = std::max(placed.width, shown(row[c]).size());
      if (breaks_headings) {
        for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
          end = column.name.find(' ', begin);
          placed.width = std::max(placed.width, std::min(end, column.name.size()) - begin);
        }
        placed.heading = wrapped(column.name, placed.width);
      }
      for (const std::string& line : placed.heading) placed.width = std::max(placed.width, line.size());
    }
  }

  size_t width() const {  // of all but the names
    size_t sum = 0;
    for (const Placed& column : columns_) sum += 2 + column.width;
    return sum;
  }

  size_t longest_name() const {
    size_t longest = 0;
    for (const OverviewGroup& group : table_.groups)
      for (const auto& row : group.rows) longest = std::max(longest, shown(row[0]).size() + kIndent);
    return longest;
  }

  size_t last_to_miss(const std::vector<size_t>& shown_columns) const {
    for (size_t i = shown_columns.size(); i-- > 0;)
      if (table_.columns[shown_columns[i]].is_optional) return i;
    return shown_columns.size() - 1;
  }

  // The title stands before the headings where there is room, unless what all rows share comes between.
  std::string titled(std::string heading) const {
    const std::string title = bold(table_.title, style_);
    const std::string first = heading.substr(0, heading.find('\n'));
    const size_t room = first.find_first_not_of(' ');
    if (table_.shared.empty() && room != std::string::npos && table_.title.size() + 1 < room)
      return title + heading.substr(table_.title.size());
    return title + "\n" + shared_text(table_, style_) + heading;
  }

  static std::string without_end(std::string text) {
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  }

  static std::string in_color(const std::string& text, const TextStyle& style) {
    if (text == "fastest") return styled(text, "32", style);
    if (text == "unreliable" || text.ends_with("?")) return styled(text, "33", style);
    if (text.starts_with("wrong")) return styled(text, "31", style);
    return text;
  }

  const OverviewTable& table_;
  const TextStyle& style_;
  std::vector<Placed> columns_;  // those that hold a value and find room
  size_t name_width_ = 0;
};

std::string notes_text(const OverviewTable& table, const TextStyle& style) {
  std::string text;
  for (const std::string& note : table.notes)
    for (const std::string& line : wrapped(note, style.width)) text += line + "\n";
  return text;
}

std::string text_of(const OverviewTable& table, const TextStyle& style) {
  const Columns columns(table, style);
  std::string text = columns.heading();
  for (const OverviewGroup& group : table.groups) {
    text += setting_text(group, style);
    for (const auto& row : group.rows) text += columns.row(row);
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

// "out: node3: why", whole, with the lines after the first indented.
std::string node_text(const std::string& words, const TextStyle& style) {
  std::string text;
  for (const std::string& line : wrapped(printable(words, ""), style.width - kIndent))
    text += (text.empty() ? "" : std::string(kIndent, ' ')) + line + "\n";
  const char* const code = words.starts_with("out:") ? "31" : words.starts_with("watch:") ? "33" : nullptr;
  const size_t end = text.find(':');
  return code == nullptr ? text : styled(text.substr(0, end), code, style) + text.substr(end);
}

std::string caution_text(const std::string& caution, const TextStyle& style) {
  const std::string line = printable(caution, "");
  std::vector<std::string> lines = wrapped(line, style.width - 2);
  if (lines.size() > kMostPerCause) {
    lines.resize(kMostPerCause);
    std::string& last = lines.back();
    while (last.size() + 4 > style.width - 2 && last.find(' ') != std::string::npos)
      last.resize(last.rfind(' '));
    last += " ...";
  }
  std::string text;
  for (size_t i = 0; i < lines.size(); ++i) text += (i == 0 ? "" : "  ") + lines[i] + "\n";
  const size_t kind = text.find(':');
  return kind == std::string::npos ? text : styled(text.substr(0, kind), "33", style) + text.substr(kind);
}

size_t num_lines(const OverviewGroup& group, const Columns& columns, const TextStyle& style) {
  size_t lines = count_lines(setting_text(group, style)) + (group.num_left_out > 0 ? 1 : 0);
  for (const auto& row : group.rows) lines += count_lines(columns.row(row));
  return lines;
}

// Leaves out rows until the table has no more lines than it may: always the last row of the group that has
// most, so that groups shrink to about the same size. When every group has only two rows, whole groups are
// left out from the end. One group always stays. Returns how many lines are left, the notes among them.
size_t shorten(OverviewTable& table, size_t most_lines, const TextStyle& style) {
  const std::string around = notes_text(table, style) + shared_text(table, style);
  const Columns columns(table, style);
  const auto total = [&] {
    size_t lines = count_lines(around);
    for (const OverviewGroup& group : table.groups) lines += num_lines(group, columns, style);
    return lines + (table.num_left_out > 0 ? 1 : 0);
  };
  while (total() > most_lines && !table.groups.empty()) {
    const auto largest = std::max_element(table.groups.begin(), table.groups.end(),
                                          [](auto& a, auto& b) { return a.rows.size() < b.rows.size(); });
    if (largest->rows.size() > 2) {
      largest->rows.pop_back();
      ++largest->num_left_out;
    } else {
      if (table.groups.size() == 1) break;
      table.groups.pop_back();
      ++table.num_left_out;
    }
  }
  return total();
}

}  // namespace

std::string to_text(Overview overview, const TextStyle& style, Explanations definitions) {
  // Shares the lines of the screen out. The first answer may take most of them. Each further one may take
  // an equal part of what is left, so lines that an answer does not need go to those after it.
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
  if (!overview.nodes.empty()) text += "\n" + bold("Nodes", style) + "\n";
  for (const std::string& line : overview.nodes) text += node_text(line, style);
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
