// Which setting is best: points that differ in the variables, threads or binding of their ranks alone, beside
// each other. A winner is one whose interval no other reaches; else the answer is AMBIGUOUS.
#include "schema/settings.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "analysis/table/cells.h"
#include "analysis/tables/about.h"
#include "analysis/tables/tables.h"
#include "analysis/tables/training_columns.h"

namespace shardmark {
namespace {

using SettingsGroup = std::vector<const MergedPoint*>;  // the fastest first

struct SettingRow {
  const MergedPoint* merged;
  const MergedPoint* best;
  bool has_winner;  // in its group
};

bool reaches(const MergedPoint& merged, const MergedPoint& best) {
  return !(merged.measures.step_low_s > best.measures.step_high_s);
}

std::vector<SettingsGroup> settings_groups(const MergedPoints& points) {
  using Key = std::tuple<std::string, std::string, std::string, int64_t>;
  std::map<Key, SettingsGroup> groups;
  std::vector<Key> order;
  for (const MergedPoint& merged : points) {
    if (!(merged.measures.step_s > 0) || merged.environments.empty()) continue;
    Point same = merged.point;
    same.environment.clear();
    same.repeat = 0;
    const Key key = {point_id(same), machine_text(*merged.environments.front(), ""), merged.transport,
                     merged.nodes};
    if (groups[key].empty()) order.push_back(key);
    groups[key].push_back(&merged);
  }
  std::vector<SettingsGroup> found;
  for (const Key& key : order) {
    SettingsGroup& group = groups[key];
    if (group.size() < 2) continue;
    std::stable_sort(group.begin(), group.end(),
                     [](const auto* a, const auto* b) { return a->measures.step_s < b->measures.step_s; });
    found.push_back(std::move(group));
  }
  return found;
}

Cell verdict_cell(const SettingRow& row) {
  if (row.merged == row.best) return cells::words(row.has_winner ? "fastest" : "AMBIGUOUS");
  return cells::words(reaches(*row.merged, *row.best) ? "AMBIGUOUS" : "slower");
}

ColumnsOf<SettingRow> setting_columns() {
  return {{{"environment", "", false},
           [](const auto& row) {
             const std::string& text = row.merged->point.environment;
             return cells::words(text.empty() ? "nothing set" : text);
           },
           "variables and flags that the ranks were started with."},
          {{"median", "ms", true, false, "step"}, milliseconds_of(&Measures::step_s)},
          {{"low", "ms", true, false, "step"}, milliseconds_of(&Measures::step_low_s)},
          {{"high", "ms", true, false, "step"}, milliseconds_of(&Measures::step_high_s)},
          {{"x fastest", ""},
           [](const auto& row) {
             return cells::number(row.merged->measures.step_s / row.best->measures.step_s, 3);
           },
           "step / that of the fastest setting of the group."},
          {{"verdict", "", false},
           verdict_cell,
           "fastest: its interval ends below those of all other settings of the group; slower: its interval "
           "begins "
           "above that of the fastest; AMBIGUOUS: two intervals overlap, so either may be faster."},
          {{"launches", "", true, true},
           [](const auto& row) { return cells::count(std::ssize(row.merged->launches)); },
           "starts of the ranks with this setting. Starts differ by more than the steps of one do: an "
           "interval of one "
           "start says nothing about the next."}};
}

}  // namespace

Table settings_table(const MergedPoints& points) {
  std::vector<SettingRow> rows;
  for (const SettingsGroup& group : settings_groups(points)) {
    const bool has_winner = std::none_of(group.begin() + 1, group.end(),
                                         [&](const auto* other) { return reaches(*other, *group.front()); });
    for (const MergedPoint* merged : group) rows.push_back({merged, group.front(), has_winner});
  }
  return make_table(
      "settings", "Settings: which variables, threads and binding are fastest",
      join(via(&SettingRow::merged, starting(Starts::group, without(about_columns(), {"machine"}))),
           setting_columns(), via(&SettingRow::merged, TrainingColumns::warnings())),
      rows);
}

}  // namespace shardmark
