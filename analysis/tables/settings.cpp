// Which setting is best: points that differ in the variables, threads or binding of their ranks alone, below
// each other.
#include "analysis/stats/settings.h"

#include "analysis/frame/training_columns.h"
#include "analysis/table/cells.h"
#include "analysis/tables/about.h"
#include "analysis/tables/tables.h"

namespace shardmark {
namespace {

auto ratio_of(double Interval::*end) {
  return [end](const RankedSetting& row) { return cells::number(row.interval.*end, 3); };
}

constexpr const char* kInterval =
    "of x fastest, from the differences between starts; none below 3 starts of both.";

ColumnsOf<RankedSetting> setting_columns() {
  return {
      {{"environment", "", false},
       [](const auto& row) { return cells::words(setting_text(*row.merged)); },
       "variables and flags that the ranks were started with."},
      {{"step", "ms"},
       [](const auto& row) { return cells::milliseconds(row.step_s); },
       "median over the starts of each start's median step."},
      {{"x fastest", ""},
       [](const auto& row) { return cells::number(row.ratio, 3); },
       "step / that of the setting with the shortest step of the group."},
      {{"low", "", true, false, "95 % interval"}, ratio_of(&Interval::low), kInterval},
      {{"high", "", true, false, "95 % interval"}, ratio_of(&Interval::high), kInterval},
      {{"verdict", "", false},
       [](const auto& row) { return cells::words(std::string(to_text(row.verdict))); },
       "fastest: all other settings of the group are slower; slower: SLOWER than the first row by the test "
       "of `shardmark compare`, whose launches are the starts (5 % over all pairs of settings together, "
       "5 % margin); SAME: the interval is within 5 %; AMBIGUOUS: these starts do not decide, or a "
       "setting has fewer than 3."},
      {{"starts", "", true, true},
       [](const auto& row) { return cells::count(std::ssize(row.merged->launches)); },
       "how often the ranks were started with this setting. A step's length differs more between starts "
       "than between the steps of one start, so only several starts tell settings apart."}};
}

}  // namespace

Table settings_table(const MergedPoints& points) {
  const std::vector<SettingsGroup> groups = ranked_settings(points);
  std::vector<RankedSetting> rows;
  for (const SettingsGroup& group : groups) rows.insert(rows.end(), group.begin(), group.end());
  Table table = make_table(
      "settings", "Settings: which variables, threads and binding are fastest",
      join(via(&RankedSetting::merged, starting(Starts::group, without(about_columns(), {"machine"}))),
           setting_columns(), via(&RankedSetting::merged, TrainingColumns::warnings())),
      rows);
  if (std::string note = too_few_starts_note(groups); !note.empty()) table.notes.push_back(std::move(note));
  return table;
}

}  // namespace shardmark
