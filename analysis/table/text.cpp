// A table as aligned text: headings over the columns with units below them, numbers to the right, long words
// wrapped.
#include "base/text.h"

#include <algorithm>

#include "analysis/table/view.h"

namespace shardmark {
namespace {

constexpr size_t kWidestColumn = 60;  // longer words wrap inside their cell
constexpr size_t kWidestLine = 118;   // of captions and notes

using Lines = std::vector<std::string>;

std::string paragraph(const std::string& text, const std::string& first, const std::string& indent) {
  std::string out;
  for (const std::string& line : wrapped(text, kWidestLine - indent.size()))
    out += (out.empty() ? first : indent) + line + "\n";
  return out;
}

std::string without_trailing_spaces(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

// Widths first, then lines. Each column is as wide as the longest of its name, its unit and its cells; two
// blanks stand between columns. Numbers are aligned to the right, words to the left. Words longer than
// kWidestColumn are wrapped, and their row then takes several lines.
class TextLayout {
 public:
  explicit TextLayout(const Section& section) : section_(section) {
    for (size_t c = 0; c < section.columns.size(); ++c) {
      const Column& column = section.columns[c];
      size_t width = std::max(column.name.size(), column.unit.size());
      for (const auto& row : section.rows)
        for (const std::string& line : lines_of(*row[c], column)) width = std::max(width, line.size());
      widths_.push_back(width);
    }
    widen_for_groups();
  }

  std::string header() const {
    Lines names, units, rules;
    for (size_t i = 0; i < widths_.size(); ++i) {
      names.push_back(column(i).name);
      units.push_back(column(i).unit);
      rules.emplace_back(widths_[i], '-');
    }
    const bool has_units =
        std::any_of(units.begin(), units.end(), [](const auto& unit) { return !unit.empty(); });
    return group_line() + line(names) + (has_units ? line(units) : "") + line(rules);
  }

  std::string body() const {
    std::string out;
    for (size_t r = 0; r < section_.rows.size(); ++r) {
      if (section_.starts_group[r]) out += "\n";
      out += row_lines(section_.rows[r]);
    }
    return out;
  }

 private:
  const Column& column(size_t i) const { return section_.columns[i]; }

  static Lines lines_of(const Cell& cell, const Column& column) {
    const std::string text = printable(cell.text, "");  // a line break would make a row of its own
    return column.numeric || text.size() <= kWidestColumn ? Lines{text} : wrapped(text, kWidestColumn);
  }

  // One past the last column of the group that starts at i.
  size_t group_end(size_t i) const {
    size_t end = i + 1;
    while (end < widths_.size() && column(end).group == column(i).group) ++end;
    return end;
  }
  // The width of neighbouring columns with the blanks between them.
  size_t span(size_t begin, size_t end) const {
    size_t width = 2 * (end - begin - 1);
    for (size_t i = begin; i < end; ++i) width += widths_[i];
    return width;
  }

  // A heading over several columns may be wider than all of them. The first of them is then widened.
  void widen_for_groups() {
    for (size_t i = 0; i < widths_.size(); i = group_end(i))
      while (!column(i).group.empty() && span(i, group_end(i)) < column(i).group.size()) ++widths_[i];
  }

  // "  -- out-of-place --" over the columns of each group; nothing without groups.
  std::string group_line() const {
    std::string out;
    bool any = false;
    for (size_t i = 0; i < widths_.size(); i = group_end(i)) {
      const std::string& group = column(i).group;
      const size_t width = group.empty() ? span(i, group_end(i)) : span(i, group_end(i)) - group.size();
      if (i > 0) out += "  ";
      if (group.empty()) {
        out += std::string(width, ' ');
        continue;
      }
      any = true;
      const size_t left = width / 2;
      const auto dashes = [](size_t n) { return n < 2 ? std::string(n, ' ') : std::string(n - 1, '-'); };
      out +=
          dashes(left) + (left < 2 ? "" : " ") + group + (width - left < 2 ? "" : " ") + dashes(width - left);
    }
    return any ? without_trailing_spaces(out) + "\n" : "";
  }

  std::string line(const Lines& fields) const {
    std::string out;
    for (size_t i = 0; i < widths_.size(); ++i) {
      if (i > 0) out += "  ";
      const std::string padding(widths_[i] - std::min(widths_[i], fields[i].size()), ' ');
      out += column(i).numeric ? padding + fields[i] : fields[i] + padding;
    }
    return without_trailing_spaces(out) + "\n";
  }

  std::string row_lines(const std::vector<const Cell*>& row) const {
    std::vector<Lines> cells;
    size_t height = 1;
    for (size_t i = 0; i < widths_.size(); ++i) {
      cells.push_back(lines_of(*row[i], column(i)));
      height = std::max(height, cells.back().size());
    }
    std::string out;
    for (size_t k = 0; k < height; ++k) {
      Lines fields;
      for (const Lines& cell : cells) fields.push_back(k < cell.size() ? cell[k] : "");
      out += line(fields);
    }
    return out;
  }

  const Section& section_;
  std::vector<size_t> widths_;
};

}  // namespace

std::string to_text(const Table& table, Explanations explanations) {
  const View view = view_of(table);
  std::string out = table.title + "\n" + std::string(table.title.size(), '=') + "\n";
  if (!view.caption.empty()) out += paragraph(view.caption, "", "");
  for (const Section& section : view.sections) {
    if (!section.caption.empty()) out += "\n" + paragraph("-> " + section.caption, "", "   ");
    const TextLayout layout(section);
    out += "\n" + layout.header() + layout.body();
  }
  std::vector<std::string> notes = table.notes;
  if (explanations == Explanations::shown)
    for (std::string& explanation : all_explanations(table)) notes.push_back(std::move(explanation));
  if (!notes.empty()) out += "\n";
  for (const std::string& note : notes) out += paragraph(note, "* ", "  ");
  return out;
}

}  // namespace shardmark
