#include "analysis/table/view.h"

#include <algorithm>
#include <functional>

#include "base/error.h"

namespace shardmark {
namespace {

using Rows = std::vector<const std::vector<Cell>*>;

struct Folded {
  std::vector<size_t> columns;  // that stay
  std::string caption;          // "model gpt2; batch 4 per rank": what the others held
};

// Columns that may be left out for people: those in which no row says anything disappear; those in which
// all rows agree become a part of the caption. A column that is not marked for it always stays.
Folded fold(const Table& table, const std::vector<size_t>& columns, const Rows& rows) {
  Folded folded;
  for (size_t c : columns) {
    const Column& column = table.columns[c];
    const auto all = [&](auto holds) {
      return std::all_of(rows.begin(), rows.end(), [&](const auto* row) { return holds((*row)[c]); });
    };
    if ((column.fold || column.is_optional) && all(std::mem_fn(&Cell::says_nothing))) continue;
    const std::string& first = rows.front()->at(c).text;
    if (!column.fold || !all([&](const Cell& cell) { return cell.text == first; })) {
      folded.columns.push_back(c);
      continue;
    }
    folded.caption += (folded.caption.empty() ? "" : "; ") + column.full_name() + " " + first;
    if (!column.unit.empty()) folded.caption += " " + column.unit;
  }
  return folded;
}

// Whether rows differ in a column that starts this, or more.
bool differ(const Table& table, const std::vector<Cell>& a, const std::vector<Cell>& b, Starts least) {
  for (size_t c = 0; c < table.columns.size(); ++c)
    if (table.columns[c].starts >= least && a[c].text != b[c].text) return true;
  return false;
}

// Groups of one row each need no blank lines.
std::vector<bool> group_starts(const Table& table, const Rows& rows) {
  std::vector<bool> starts(rows.size(), false);
  for (size_t r = 1; r < rows.size(); ++r) starts[r] = differ(table, *rows[r - 1], *rows[r], Starts::group);
  const auto num_starts = static_cast<size_t>(std::count(starts.begin(), starts.end(), true));
  return num_starts + 1 < rows.size() ? starts : std::vector<bool>(rows.size(), false);
}

Section make_section(const Table& table, const Folded& folded, const Rows& rows) {
  Section section{folded.caption, {}, {}, group_starts(table, rows)};
  for (size_t c : folded.columns) section.columns.push_back(table.columns[c]);
  for (const auto* row : rows) {
    section.rows.emplace_back();
    for (size_t c : folded.columns) section.rows.back().push_back(&(*row)[c]);
  }
  return section;
}

}  // namespace

View view_of(const Table& table) {
  std::vector<size_t> columns(table.columns.size());
  for (size_t c = 0; c < columns.size(); ++c) columns[c] = c;
  Rows rows;
  for (const auto& row : table.rows) {
    ENSURE(row.size() == columns.size(), "row and columns differ in " + table.key);
    rows.push_back(&row);
  }
  if (rows.empty()) return {};

  // Columns are folded twice: over the whole table into its caption, and what remains over each section
  // into the section's. So a column disappears from a section whose rows agree, even if other sections
  // differ.
  const Folded folded = fold(table, columns, rows);
  View view{folded.caption.empty() ? "" : "Every row: " + folded.caption + ".", {}};
  for (size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    for (end = begin + 1; end < rows.size(); ++end)
      if (differ(table, *rows[end - 1], *rows[end], Starts::section)) break;
    const Rows part(rows.begin() + static_cast<std::ptrdiff_t>(begin),
                    rows.begin() + static_cast<std::ptrdiff_t>(end));
    const bool is_whole = part.size() == rows.size();
    view.sections.push_back(
        make_section(table, is_whole ? Folded{folded.columns, ""} : fold(table, folded.columns, part), part));
  }
  return view;
}

}  // namespace shardmark
