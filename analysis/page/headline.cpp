// The answer of each table of the first screen as a sentence: what stands on top of the page.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "analysis/page/parts.h"
#include "analysis/render/html.h"
#include "base/units.h"

namespace shardmark {
namespace {

using Row = std::vector<Cell>;

std::optional<size_t> column_of(const OverviewTable& table, std::string_view name) {
  for (size_t c = 0; c < table.columns.size(); ++c)
    if (table.columns[c].name == name) return c;
  return {};
}

std::string text_of(const OverviewTable& table, const Row& row, std::string_view name) {
  const auto c = column_of(table, name);
  return c && !row[*c].says_nothing() ? row[*c].text : "";
}

// "37.5 ms", without the mark of doubt, which the sentence says in words.
std::string with_unit(const OverviewTable& table, const Row& row, std::string_view name) {
  std::string text = text_of(table, row, name);
  if (text.ends_with(kMark)) text.resize(text.size() - std::string_view(kMark).size());
  if (text.empty() || text == "-") return "";
  const std::string& unit = table.columns[*column_of(table, name)].unit;
  return text + (unit.empty() ? "" : " " + unit);
}

// Says in words what the mark on these cells says.
std::string doubt_of(const OverviewTable& table, const Row& row, std::string_view name) {
  return text_of(table, row, name).ends_with(kMark) ? "; its measurement has a warning" : "";
}

double number_of(const OverviewTable& table, const Row& row, std::string_view name) {
  const auto c = column_of(table, name);
  return c && row[*c].value.is_number() ? row[*c].value.get<double>() : std::nan("");
}

std::string in_setting(const OverviewGroup& group) {
  return group.setting.empty() ? "" : group.setting + ": ";
}

// The row of all groups whose value of this column is largest, and its group.
struct Found {
  const OverviewGroup* group = nullptr;
  const Row* row = nullptr;
};
Found largest(const OverviewTable& table, std::string_view name) {
  Found found;
  double most = -INFINITY;
  for (const OverviewGroup& group : table.groups)
    for (const Row& row : group.rows)
      if (const double value = number_of(table, row, name); value > most) {
        most = value;
        found = {&group, &row};
      }
  return found;
}

// The first row among the rivals is the fastest, as rows are in the order of their times; rows that are not
// ranked (`single`, unreliable ones) may stand before it. With a single rival nothing is compared.
std::string of_fastest(const OverviewTable& table, const char* what, const char* several) {
  const OverviewGroup& group = table.groups.front();
  const auto is_rival = [](Tier tier) { return tier != Tier::unranked && tier != Tier::unreliable; };
  const auto fastest = std::find_if(group.tiers.begin(), group.tiers.end(), is_rival);
  const auto place = static_cast<size_t>(fastest - group.tiers.begin());
  const Row& row = place < group.rows.size() ? group.rows[place] : group.rows.front();
  const std::string step = with_unit(table, row, "step");
  if (step.empty()) return "";
  const auto rivals = std::count_if(group.tiers.begin(), group.tiers.end(), is_rival);
  if (rivals < 2) return fmt::format("{}{} takes {} per {}.", in_setting(group), row[0].text, step, what);
  const bool is_sure = *fastest == Tier::fastest;
  return fmt::format("{}{} {} fastest of {} {}, with {} per {}{}.", in_setting(group), row[0].text,
                     is_sure ? "is the" : "was the", rivals, several, step, what,
                     is_sure ? "" : "; the launches do not prove this order");
}

std::string of_collectives(const OverviewTable& table) {
  const auto [group, row] = largest(table, "busbw");
  if (row == nullptr) return "";
  return fmt::format("{}{} reaches the highest bus bandwidth, {}{}.", in_setting(*group), (*row)[0].text,
                     with_unit(table, *row, "busbw"), doubt_of(table, *row, "busbw"));
}

std::string of_together(const OverviewTable& table) {
  const auto [group, row] = largest(table, "/ longer");
  if (row == nullptr) return "";
  return fmt::format(
      "{}beside {}, both together take {} times as long as the longer one alone, the most of all{}.",
      in_setting(*group), (*row)[0].text, with_unit(table, *row, "/ longer"),
      doubt_of(table, *row, "/ longer"));
}

std::string of_largest(const OverviewTable& table) {
  const auto [group, row] = largest(table, "largest batch");
  if (row == nullptr) return "";
  return fmt::format("{}{} fits the largest batch, {} per rank.", in_setting(*group), (*row)[0].text,
                     text_of(table, *row, "largest batch"));
}

std::string of_sustained(const OverviewTable& table) {
  const auto [group, row] = largest(table, "change");
  if (row == nullptr) return "";
  const double change = number_of(table, *row, "change");
  return fmt::format("{}{}: at the end a step took {} % {} than at the start.", in_setting(*group),
                     (*row)[0].text, format_number(std::abs(change), 2), change < 0 ? "less" : "longer");
}

std::string sentence_of(const OverviewTable& table) {
  if (table.groups.empty() || table.groups.front().rows.empty()) return "";
  if (table.key == "strategies") return of_fastest(table, "step", "strategies");
  if (table.key == "layouts") return of_fastest(table, "step", "layouts");
  if (table.key == "settings") return of_fastest(table, "operation or step", "settings");
  if (table.key == "collectives") return of_collectives(table);
  if (table.key == "together") return of_together(table);
  if (table.key == "memory.largest") return of_largest(table);
  if (table.key == "sustained") return of_sustained(table);
  return "";
}

}  // namespace

std::string headline_html(const Overview& overview) {
  constexpr size_t kMost = 2;  // of the first tables, which answer what the suite asked
  std::string out;
  size_t count = 0;
  for (const OverviewTable& table : overview.answers) {
    const std::string sentence = sentence_of(table);
    if (sentence.empty() || count == kMost) continue;
    out += html::element("p", html::text(sentence), "class='answer'") + "\n";
    ++count;
  }
  return out;
}

}  // namespace shardmark
