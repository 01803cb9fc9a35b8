// Which setting is fastest, for each point that was measured under several.
#include "analysis/stats/settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/frame/names.h"
#include "analysis/overview/overview.h"
#include "analysis/overview/ranked.h"
#include "analysis/table/cells.h"
#include "base/units.h"
#include "schema/settings.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

// What the point of a group is. Its machine includes the setting, and so is not named.
LabelParts parts_of(const MergedPoint& merged, const PlotNames& names) {
  if (!is_training(merged)) {
    const CollectivePoint& c = merged.point.collective;
    return {{"operation", operation_text(c), {}, Said::always},
            {"bytes", format_bytes(static_cast<double>(c.bytes)), {}, Said::always},
            {"place", c.in_place ? "" : "out of place"},
            {"ranks", ranks_text(merged)},
            {"type", c.dtype},
            {"transport", brief_text("transport", merged.transport)}};
  }
  const TrainingPoint& t = merged.point.training;
  LabelParts parts = names.parts(merged, {{"batch", batch_text(t.batch_size, false), {}, Said::always},
                                          {"ranks", ranks_text(merged)},
                                          choice_part("strategy", strategy_text(t), Said::always)});
  for (LabelPart& part : parts)
    if (part.axis == "model") part.said = Said::always;
  std::erase_if(parts, [](const LabelPart& part) { return part.axis == "machine"; });
  return parts;
}

std::vector<LabelParts> labels_of_groups(const std::vector<SettingsGroup>& groups) {
  std::vector<MergedPoint> firsts;
  for (const SettingsGroup& group : groups) firsts.push_back(*group.front().merged);
  const PlotNames names(firsts);
  std::vector<LabelParts> labels;
  for (const MergedPoint& first : firsts) labels.push_back(parts_of(first, names));
  return labels;
}

// SAME and AMBIGUOUS are both `perhaps`: neither tells the setting from the fastest.
Tier tier_of(const RankedSetting& row) {
  switch (row.verdict) {
    case SettingVerdict::fastest:
      return Tier::fastest;
    case SettingVerdict::slower:
      return Tier::slower;
    default:
      return Tier::perhaps;
  }
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
       {.name = "vs fastest",
        .definition =
            "step / the first row's step - 1. fastest: all others are slower. ?: these starts do not "
            "tell the setting from the first one, by the test of `shardmark compare`; fewer than 3 "
            "starts never do."},
       {.name = "starts", .definition = "how often the ranks were started with this setting."}},
      {},
      {}};
  bool any_unsure = false;
  for (const SettingsGroup& group : groups) {
    OverviewGroup& shown = table.groups.emplace_back();
    for (const RankedSetting& row : group) {
      const Tier tier = shown.tiers.emplace_back(tier_of(row));
      any_unsure = any_unsure || (tier == Tier::perhaps && row.has_enough_starts);
      shown.rows.push_back({cells::words(differing_text(row, group)), cells::milliseconds(row.step_s),
                            slower_cell(row.ratio, tier), cells::count(std::ssize(row.merged->launches))});
    }
  }
  name_groups(table, labels_of_groups(groups));
  if (any_unsure)
    table.notes.emplace_back(
        "?: these starts do not tell this setting from the fastest. Measure more starts of each (shardmark "
        "launch SUITE -- --repeats 5), or report several studies together.");
  if (std::string note = too_few_starts_note(groups); !note.empty()) table.notes.push_back(std::move(note));
  return table;
}

}  // namespace shardmark
