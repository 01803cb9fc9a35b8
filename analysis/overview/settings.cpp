// Which setting is fastest, for each point that was measured under several.
#include "analysis/stats/settings.h"

#include <algorithm>

#include "analysis/overview/overview.h"
#include "analysis/table/cells.h"
#include "schema/settings.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

std::string point_text(const MergedPoint& merged) {
  Point point = merged.point;
  point.environment.clear();
  return brief_text(point);
}

// What tells a setting from the others of its group. Open MPI's parameters go by their own names, without the
// prefix of their variables.
std::string differing_text(const RankedSetting& row, const SettingsGroup& group) {
  const auto settings_of = [](const RankedSetting& one) {
    return settings_from_text(one.merged->point.environment);
  };
  const Settings own = settings_of(row);
  Settings differing;
  for (const auto& [name, value] : own) {
    const bool is_shared = std::all_of(group.begin(), group.end(), [&](const RankedSetting& other) {
      const Settings all = settings_of(other);
      const auto found = all.find(name);
      return found != all.end() && found->second == value;
    });
    constexpr std::string_view kOpenMpi = "OMPI_MCA_";
    if (!is_shared) differing[name.starts_with(kOpenMpi) ? name.substr(kOpenMpi.size()) : name] = value;
  }
  return differing.empty() ? setting_text(*row.merged) : to_text(differing);
}

}  // namespace

OverviewTable settings_overview(const std::vector<SettingsGroup>& groups) {
  OverviewTable table{
      "Settings, the shortest step first",
      "settings",
      {{.name = "setting", .numeric = false},
       {.name = "step", .unit = "ms", .definition = "median over the starts of the ranks with this setting."},
       {.name = "x fastest", .definition = "step / the first row's step."},
       {.name = "verdict",
        .definition =
            "fastest: all others are slower; slower: than the first row, by the test of `shardmark "
            "compare`; SAME: they differ by less than 5 %; AMBIGUOUS: these starts do not decide, or "
            "a setting has fewer than 3."},
       {.name = "starts", .definition = "how often the ranks were started with this setting."}},
      {},
      {}};
  for (const SettingsGroup& group : groups) {
    OverviewGroup& shown = table.groups.emplace_back(OverviewGroup{point_text(*group.front().merged), {}});
    for (const RankedSetting& row : group)
      shown.rows.push_back({cells::words(differing_text(row, group)), cells::milliseconds(row.step_s),
                            cells::number(row.ratio, 3), cells::words(std::string(to_text(row.verdict))),
                            cells::count(std::ssize(row.merged->launches))});
  }
  if (std::string note = too_few_starts_note(groups); !note.empty()) table.notes.push_back(std::move(note));
  return table;
}

}  // namespace shardmark
