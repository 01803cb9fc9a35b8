// Which plots and tables a page shows: those with something to see.
#include <algorithm>
#include <array>

#include "analysis/page/parts.h"

namespace shardmark {
namespace {

constexpr std::string_view kByFormula = "interconnects";

bool is_curve(const Curve& curve) { return curve.form == Form::measured; }

// Columns of which at least one must hold a value for the table to say anything.
struct Findings {
  std::string_view table;
  std::array<std::string_view, 2> columns;
};
constexpr Findings kFindings[] = {
    {"scaling.limits", {"falls below 80 % at ranks value", ""}},
    {"scaling_laws", {"s or alpha value", "limit or peak value"}},
};

bool holds_value(const Table& table, std::string_view name) {
  for (size_t c = 0; c < table.columns.size(); ++c)
    if (table.columns[c].full_name() == name &&
        std::any_of(table.rows.begin(), table.rows.end(),
                    [c](const auto& row) { return !row[c].says_nothing(); }))
      return true;
  return false;
}

}  // namespace

bool is_telling(const Plot& plot, bool asked_for_links) {
  // What follows from formulas alone is shown only if the user named links.
  if (plot.table == kByFormula) return asked_for_links;
  if (!plot.rows.empty())
    return plot.rows.size() > 1 ||
           std::any_of(plot.curves.begin(), plot.curves.end(),
                       [](const Curve& curve) { return curve.form == Form::samples; });
  // A curve of two points says no more than its table, and neither does a single mark.
  constexpr size_t kLeastOfCurve = 3;
  size_t num_dots = 0;
  for (const Curve& curve : plot.curves) {
    if (is_curve(curve) && curve.points.size() >= kLeastOfCurve) return true;
    if (curve.form == Form::dots) num_dots += curve.points.size();
  }
  return num_dots > 1;
}

bool has_finding(const Table& table, bool asked_for_links) {
  if (table.key == kByFormula) return asked_for_links;
  for (const Findings& findings : kFindings) {
    if (table.key != findings.table) continue;
    return std::any_of(findings.columns.begin(), findings.columns.end(),
                       [&](std::string_view name) { return holds_value(table, name); });
  }
  return !table.rows.empty();
}

}  // namespace shardmark
