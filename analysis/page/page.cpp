// The order of the page's parts.
#include "analysis/page/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>

#include "analysis/frame/assets.h"
#include "analysis/page/parts.h"
#include "analysis/plots/plots.h"
#include "analysis/reference/tables.h"
#include "analysis/render/html.h"
#include "analysis/render/svg.h"
#include "analysis/tables/names.h"
#include "base/units.h"

namespace shardmark {
namespace {

using html::element;

std::string figure(const Plot& plot, bool with_note, const std::string& id_of = "plot_") {
  const std::string caption = element("b", html::text(plot.title)) + element("span", html::text(plot.about));
  return element("figure",
                 element("figcaption", caption) + to_svg(plot) +
                     (with_note ? element("p", html::text(plot.note)) : ""),
                 "id='" + id_of + html::text(plot.key) + "'") +
         "\n";
}

// Parts with a heading each, and the list of contents that leads to them.
class Page {
 public:
  void begin_part(const std::string& id, const std::string& title) {
    body_ += element("h2", html::text(title), "id='" + html::text(id) + "'") + "\n";
    const std::string name = title.substr(0, title.find_first_of(":,"));
    contents_ += element("a", html::text(name), "href='#" + html::text(id) + "'") + "\n";
  }
  void add(const std::string& markup) { body_ += markup; }

  std::string document(const std::string& title) const {
    const std::map<std::string, std::string> parts = {
        {"title", html::text(title)},
        {"contents", contents_},
        {"body", body_},
        {"style", std::string(plot_style()) + std::string(page_style())},  // dark paper overrides plots
        {"definitions", std::string(svg_definitions())},
        {"script", std::string(page_script())}};
    // Replaces each {{name}} of the template in one pass, so a text of a study that holds {{...}} itself is
    // not replaced again.
    std::string out;
    std::string_view rest = page_template();
    for (size_t at = 0; (at = rest.find("{{")) != std::string_view::npos;) {
      const size_t end = rest.find("}}", at);
      out += rest.substr(0, at);
      out += parts.at(std::string(rest.substr(at + 2, end - at - 2)));
      rest = rest.substr(end + 2);
    }
    return out + std::string(rest);
  }

 private:
  std::string contents_, body_;
};

// A study of thousands of points has thousands of plots: nobody looks at all of them, and no browser should.
constexpr size_t kMostOfAKind = 24;

std::string figures_of(std::string_view part, const Plots& plots) {
  std::string figures;
  std::map<std::string, size_t> shown;  // by title
  std::set<std::string> notes;          // each is said once
  size_t left_out = 0;
  for (const Plot& plot : plots) {
    if (plot.table != part) continue;
    if (++shown[plot.title] <= kMostOfAKind)
      figures += figure(plot, notes.insert(plot.note).second);
    else
      ++left_out;
  }
  if (figures.empty()) return "";
  const std::string rest = "Plots of the same kinds that are left out here: " + std::to_string(left_out) +
                           "; report --plots DIR draws every one.";
  return element("div", "\n" + figures, "class='plots'") + "\n" +
         (left_out == 0 ? "" : element("p", rest) + "\n");
}

// A page shows at most kMostPageRows rows of a table, because nobody scrolls through thousands.
Table shortened(Table&& table) {
  if (table.rows.size() > kMostPageRows) {
    table.notes.insert(table.notes.begin(),
                       fmt::format("Left out here: the last {} of {} rows; report --table {} prints all.",
                                   format_count(static_cast<double>(table.rows.size() - kMostPageRows)),
                                   format_count(static_cast<double>(table.rows.size())), table.key));
    table.rows.resize(kMostPageRows);
    table.rows.shrink_to_fit();
  }
  return std::move(table);
}

// "Scaling laws"
std::string title_of_part(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  name.front() = static_cast<char>(std::toupper(name.front()));
  return name;
}

// The tables of one name are a part, with its plots; those of collectives stand side by side.
void add_tables(Page& page, const std::vector<Table>& tables, const Plots& plots,
                const std::string& schedules) {
  for (size_t i = 0, end = 0; i < tables.size(); i = end) {
    const std::string part(name_of_table(tables[i].key));
    while (end < tables.size() && name_of_table(tables[end].key) == part) ++end;
    const bool has_own_title = tables[i].key == part;  // else it is one of several equals
    page.begin_part(part, has_own_title ? tables[i].title : title_of_part(part));
    page.add(figures_of(part, plots));
    std::string markup;
    for (size_t t = i; t < end; ++t) {
      const std::string title = t == i && has_own_title ? "" : element("h3", html::text(tables[t].title));
      markup += element("div", title + html::table(tables[t])) + "\n";
    }
    page.add(part == "collectives" ? element("div", markup, "class='tables'") + "\n" : markup);
    if (part == "layouts") page.add(schedules);
  }
}

constexpr const char* kHowToZoom =
    "Point at a mark for its value. Drag over a plot to zoom; a double click goes back.";

// The first pictures of the kinds that answer what a suite asks: those that stand above the answers' tables,
// and those below.
struct AnsweringFigures {
  std::string above, below;
};

AnsweringFigures answering_figures(const Plots& plots) {
  constexpr size_t kMost = 4, kMostAbove = 2;
  std::string above, below;
  size_t count = 0;
  for (const std::string_view key : {"layouts", "interval_time", "speed_and_memory", "weak_efficiency",
                                     "strong_efficiency", "busbw", "samples"}) {
    const auto found =
        std::find_if(plots.begin(), plots.end(), [&](const Plot& plot) { return plot.key.starts_with(key); });
    if (found == plots.end() || count == kMost) continue;
    (count++ < kMostAbove ? above : below) += figure(*found, true, "answer_");
  }
  const auto framed = [](const std::string& figures) {
    return figures.empty() ? "" : element("div", "\n" + figures, "class='plots'") + "\n";
  };
  return {framed(above) + (above.empty() ? "" : element("p", kHowToZoom, "class='hint'") + "\n"),
          framed(below)};
}

// A line about the tables without anything to see.
std::string left_out_html(const std::vector<std::string>& keys) {
  std::string names;
  for (const std::string& key : keys) names += (names.empty() ? "" : ", ") + key;
  if (names.empty()) return "";
  return element("p", html::text("Left out here, because they hold nothing that was measured or fitted: " +
                                 names + ". report --table NAME prints each, with the reasons.")) +
         "\n";
}

std::string title_of(const std::vector<StudyData>& studies) {
  std::string names;
  for (const StudyData& study : studies)
    names += (names.empty() ? "" : ", ") + std::filesystem::path(study.path).stem().string();
  return "shardmark: " + names;
}

}  // namespace

std::string make_page(const ReportData& data, const ReportInputs& inputs) {
  const auto& [studies, points, unfinished, scaling, matches, rates, nodes] = data;
  Page page;
  const bool asked_for_links = inputs.links.size() != specs::interconnect_links().size();
  Plots plots = make_plots(studies, points, scaling, inputs.links);
  std::erase_if(plots, [&](const Plot& plot) { return !is_telling(plot, asked_for_links); });
  Overview overview = overview_of(studies, points, unfinished, scaling);
  overview.standing = standing_of(points, inputs.references, matches.points, rates);
  overview.nodes = nodes_overview(nodes);
  std::vector<Table> tables;
  std::vector<std::string> without_finding;
  visit_tables(data, inputs, [&](Table&& table) {
    if (has_finding(table, asked_for_links))
      tables.push_back(shortened(std::move(table)));
    else
      without_finding.push_back(table.key);
  });
  const AnsweringFigures figures = answering_figures(plots);
  page.add(headline_html(overview) + studies_html(overview) + nodes_html(overview) + figures.above +
           answers_html(overview) + figures.below + standing_html(overview) + cautions_html(overview));
  add_tables(page, tables, plots, schedules_html(points));
  page.add(left_out_html(without_finding));
  page.begin_part("environment", "Environment");
  for (const StudyData& study : studies) page.add(environment_html(study));
  page.begin_part("reproduce", "How to reproduce each point");
  page.add(reproduce_html(studies));
  return page.document(title_of(studies));
}

}  // namespace shardmark
