#include "analysis/render/html.h"

#include <algorithm>
#include <set>

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
    cells += element(group.empty() ? "td" : "th", text(group),
                     "colspan='" + std::to_string(group_end(columns, begin) - begin) + "'" +
                         (group.empty() ? "" : " scope='colgroup' class='over'"));
  }
  return any ? element("tr", cells) : "";
}

// "tokens/s/rank" may break behind each stroke.
std::string breakable(const std::string& name) {
  std::string broken;
  for (const char letter : name) broken += letter == '/' ? "/<wbr>" : text(std::string(1, letter));
  return broken;
}

std::string heading_row(const std::vector<Column>& columns) {
  std::string cells;
  for (size_t c = 0; c < columns.size(); ++c) {
    const Column& column = columns[c];
    cells += element("th",
                     element("span", breakable(column.name)) +
                         (column.unit.empty() ? "" : element("small", breakable(column.unit))),
                     "scope='col' " + attributes_of(columns, c));
  }
  return element("tr", cells);
}

std::string body_row(const std::vector<Column>& columns, const std::vector<const Cell*>& row,
                     bool starts_group) {
  std::string cells;
  for (size_t c = 0; c < columns.size(); ++c)
    cells += element(is_key(columns, c) ? "th" : "td", text(row[c]->text),
                     (is_key(columns, c) ? "scope='row' " : "") +
                         (row[c]->text.size() > kWideCell ? "class='wide'" : attributes_of(columns, c)));
  return element("tr", cells, starts_group ? "class='group'" : "") + "\n";
}

// The columns of a section that say what it is about: they become a row above it.
struct AboutSections {
  std::vector<size_t> about, shown;  // columns
};

// Splits the columns: those that start a section become the row above their section, the others are shown.
// If there are no others, all are shown, because a table without columns says nothing.
AboutSections about_sections(const Table& table, const std::vector<Column>& columns) {
  std::set<std::string> names;
  for (const Column& column : table.columns)
    if (column.starts == Starts::section) names.insert(column.full_name());
  AboutSections split;
  for (size_t c = 0; c < columns.size(); ++c)
    (names.contains(columns[c].full_name()) ? split.about : split.shown).push_back(c);
  if (split.shown.empty()) std::swap(split.about, split.shown);
  return split;
}

// "model gpt2(layers=2); optimizer adamw"
std::string about_text(const std::vector<Column>& columns, const std::vector<const Cell*>& row,
                       const std::vector<size_t>& about) {
  std::string words;
  for (const size_t c : about) {
    if (row[c]->says_nothing()) continue;
    words += (words.empty() ? "" : "; ") + columns[c].full_name() + " " + row[c]->text;
    if (!columns[c].unit.empty()) words += " " + columns[c].unit;
  }
  return words;
}

// Rows that are about the same thing (a model, a machine) become a table body, with one row above them that
// says what it is. What that row says is no column any more. `columns` gets the columns that remain.
std::string bodies(const Table& table, const Section& section, std::vector<Column>& columns) {
  const AboutSections split = about_sections(table, section.columns);
  for (const size_t c : split.shown) columns.push_back(section.columns[c]);
  std::string out, rows, before;
  for (size_t r = 0; r < section.rows.size(); ++r) {
    const std::string about = about_text(section.columns, section.rows[r], split.about);
    const bool is_new = r == 0 || about != before;
    if (is_new) {
      if (r > 0) out += element("tbody", "\n" + rows);
      rows = about.empty() ? "" : wide_row(about, "setting", columns.size());
      before = about;
    }
    std::vector<const Cell*> cells;
    for (const size_t c : split.shown) cells.push_back(section.rows[r][c]);
    rows += body_row(columns, cells, section.starts_group[r] && !is_new);
  }
  return out + element("tbody", "\n" + rows);
}

}  // namespace

std::string wide_row(const std::string& words, const char* kind, size_t num_columns) {
  return element("tr",
                 element("td", element("div", text(words)), "colspan='" + std::to_string(num_columns) + "'"),
                 std::string("class='") + kind + "'") +
         "\n";
}

std::string scrolled(const std::string& caption, const std::string& markup, const std::string& table_class) {
  return element("div",
                 element("table", element("caption", text(caption)) + markup,
                         table_class.empty() ? "" : "class='" + table_class + "'"),
                 "class='scroll' role='region' aria-label='" + text(caption) + "'") +
         "\n";
}

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
    std::vector<Column> columns;
    const std::string rows = bodies(table, section, columns);
    out += scrolled(table.title, element("thead", group_row(columns) + heading_row(columns)) + rows);
  }
  if (!table.notes.empty()) out += list(table.notes) + "\n";
  if (const auto explanations = all_explanations(table); !explanations.empty())
    out += element("details", element("summary", "What the columns mean") + list(explanations),
                   "class='prints'") +
           "\n";
  return out;
}

}  // namespace shardmark::html
