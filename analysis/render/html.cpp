#include "analysis/render/html.h"

#include <algorithm>

#include "analysis/render/svg.h"
#include "analysis/table/view.h"

namespace shardmark::html {
namespace {

constexpr size_t kWideCell = 60;  // letters; longer ones may break into lines

// The column that says which row it is stays in sight when a wide table scrolls.
bool is_key(const std::vector<Column>& columns, size_t c) {
  for (size_t i = 0; i < columns.size(); ++i)
    if (columns[i].name == "strategy") return i == c;
  return c == 0;
}

std::string attributes_of(const std::vector<Column>& columns, size_t c) {
  const std::string classes = std::string(columns[c].numeric ? "n" : "") + (is_key(columns, c) ? " key" : "");
  return classes.empty() ? "" : "class='" + classes + "'";
}

size_t group_end(const std::vector<Column>& columns, size_t begin) {
  size_t end = begin + 1;
  while (end < columns.size() && columns[end].group == columns[begin].group) ++end;
  return end;
}

// Headings over neighbouring columns; nothing where no column has one.
std::string group_row(const std::vector<Column>& columns) {
  std::string cells;
  bool any = false;
  for (size_t begin = 0; begin < columns.size(); begin = group_end(columns, begin)) {
    const std::string& group = columns[begin].group;
    any |= !group.empty();
    cells += element("th", text(group),
                     "colspan='" + std::to_string(group_end(columns, begin) - begin) + "'" +
                         (group.empty() ? "" : " class='over'"));
  }
  return any ? element("tr", cells) : "";
}

std::string heading_row(const std::vector<Column>& columns) {
  std::string cells;
  for (size_t c = 0; c < columns.size(); ++c) {
    const Column& column = columns[c];
    cells += element(
        "th",
        element("span", text(column.name)) + (column.unit.empty() ? "" : element("small", text(column.unit))),
        attributes_of(columns, c));
  }
  return element("tr", cells);
}

std::string body_row(const std::vector<Column>& columns, const std::vector<const Cell*>& row,
                     bool starts_group) {
  std::string cells;
  for (size_t c = 0; c < columns.size(); ++c)
    cells += element("td", text(row[c]->text),
                     row[c]->text.size() > kWideCell ? "class='wide'" : attributes_of(columns, c));
  return element("tr", cells, starts_group ? "class='group'" : "") + "\n";
}

}  // namespace

std::string text(const std::string& text) { return escaped_markup(text); }

std::string element(const std::string& name, const std::string& content, const std::string& attributes) {
  return "<" + name + (attributes.empty() ? "" : " " + attributes) + ">" + content + "</" + name + ">";
}

std::string list(const std::vector<std::string>& items) {
  std::string content = "\n";
  for (const std::string& item : items) content += element("li", text(item)) + "\n";
  return element("ul", content) + "\n";
}

std::string table(const Table& table) {
  Table whole = table;
  for (Column& column : whole.columns)  // one table can be sorted as a whole, several cannot
    column.starts = std::min(column.starts, Starts::group);
  const View view = view_of(whole);
  std::string out = view.caption.empty() ? "" : element("p", text(view.caption)) + "\n";
  for (const Section& section : view.sections) {
    std::string rows = "\n";
    for (size_t r = 0; r < section.rows.size(); ++r)
      rows += body_row(section.columns, section.rows[r], section.starts_group[r]);
    out +=
        element("div",
                element("table", element("thead", group_row(section.columns) + heading_row(section.columns)) +
                                     element("tbody", rows)),
                "class='scroll'") +
        "\n";
  }
  if (!table.notes.empty()) out += list(table.notes) + "\n";
  if (const auto explanations = all_explanations(table); !explanations.empty())
    out += element("details", element("summary", "What the columns mean") + list(explanations),
                   "class='prints'") +
           "\n";
  return out;
}

}  // namespace shardmark::html
