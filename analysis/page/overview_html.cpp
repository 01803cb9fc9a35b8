// The top of the page: the same answers as the first screen of a terminal.
#include "analysis/page/parts.h"
#include "analysis/render/html.h"

namespace shardmark {
namespace {

using html::element;

std::string table_html(const OverviewTable& table) {
  const std::vector<size_t> columns = columns_with_values(table);
  std::string headings, rows = "\n", notes;
  for (const std::string& note : table.notes) notes += element("p", html::text(note)) + "\n";
  for (const size_t c : columns)
    headings += element(
        "th",
        element("span", html::text(table.columns[c].name)) +
            (table.columns[c].unit.empty() ? "" : element("small", html::text(table.columns[c].unit))),
        c == 0 ? "scope='col'" : "scope='col' class='n'");
  for (const OverviewGroup& group : table.groups) {
    if (!group.setting.empty()) rows += html::wide_row(group.setting, "setting", columns.size());
    for (const auto& row : group.rows) {
      std::string cells;
      for (const size_t c : columns)
        cells += c == 0 ? element("th", html::text(row[c].text), "scope='row'")
                        : element("td", html::text(row[c].text), "class='n'");
      rows += element("tr", cells) + "\n";
    }
    if (group.num_left_out > 0)
      rows += html::wide_row("and " + std::to_string(group.num_left_out) + " more", "more", columns.size());
  }
  if (table.num_left_out > 0)
    rows += html::wide_row("and " + std::to_string(table.num_left_out) + " more settings", "more",
                           columns.size());
  return element("h3", html::text(table.title)) +
         (table.shared.empty() ? "" : element("p", html::text(table.shared)) + "\n") +
         html::scrolled(table.title, element("thead", element("tr", headings)) + element("tbody", rows),
                        "answers") +
         notes;
}

}  // namespace

std::string studies_html(const Overview& overview) {
  std::string out;
  for (const std::string& study : overview.studies) out += element("p", html::text(study)) + "\n";
  return out;
}

std::string nodes_html(const Overview& overview) {
  return overview.nodes.empty() ? "" : element("h3", "Nodes") + html::list(overview.nodes);
}

std::string answers_html(const Overview& overview) {
  std::string out;
  for (const OverviewTable& table : overview.answers) out += table_html(table);
  return out;
}

std::string standing_html(const Overview& overview) {
  return overview.standing.empty() ? "" : element("h3", "Is this good?") + html::list(overview.standing);
}

std::string cautions_html(const Overview& overview) {
  return overview.cautions.empty() ? "" : element("h3", "Warnings") + html::list(overview.cautions);
}

}  // namespace shardmark
