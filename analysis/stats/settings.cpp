// Verdicts on settings: starts are the unit of replication, as launches are in a comparison.
#include "analysis/stats/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "analysis/frame/groups.h"
#include "analysis/frame/together.h"

namespace shardmark {
namespace {

constexpr size_t kMostStarts = 30;  // the latest ones: more would tell little, and the exact test takes long

// The launches of a point are in the order in which they began.
std::vector<double> steps_of_starts(const MergedPoint& merged) {
  const size_t count = std::min(merged.launches.size(), kMostStarts);
  std::vector<double> steps;
  for (size_t i = merged.launches.size() - count; i < merged.launches.size(); ++i)
    steps.push_back(merged.launches[i].value);
  return steps;
}

// Equal where points differ in their settings alone.
auto without_setting(const RankedSetting& row) {
  const MergedPoint& merged = *row.merged;
  Point same = merged.point;
  same.environment.clear();
  return std::tuple(content_id(same), machine_text(*merged.environments.front()), merged.transport,
                    merged.nodes, merged.ranks_per_node);
}

std::vector<SettingsGroup> settings_groups(const std::vector<MergedPoint>& points) {
  std::vector<RankedSetting> rows;
  for (const MergedPoint& merged : points) {
    if (merged.launches.empty() || !(merged.measures.step_s > 0)) continue;
    if (is_together(merged)) continue;  // a round is as long as each start chose to make it
    rows.push_back({&merged,
                    median(steps_of_starts(merged)),
                    Measures::kNone,
                    {Measures::kNone, Measures::kNone},
                    SettingVerdict::ambiguous,
                    merged.launches.size() >= kLeastLaunches});
  }
  std::vector<SettingsGroup> groups;
  for (const auto& group : groups_of(rows, without_setting, &RankedSetting::step_s)) {
    if (group.size() < 2) continue;
    groups.emplace_back();
    for (const RankedSetting* row : group) groups.back().push_back(*row);
  }
  return groups;
}

SettingVerdict verdict_of(const Comparison& against_first) {
  switch (against_first.verdict) {
    case Judgement::slower:
      return SettingVerdict::slower;
    case Judgement::same:
      return SettingVerdict::same;
    default:
      return SettingVerdict::ambiguous;
  }
}

SettingVerdict verdict_of_first(const SettingsGroup& group) {
  const auto has = [&](SettingVerdict verdict) {
    return std::any_of(group.begin() + 1, group.end(),
                       [&](const RankedSetting& row) { return row.verdict == verdict; });
  };
  if (has(SettingVerdict::ambiguous)) return SettingVerdict::ambiguous;
  return has(SettingVerdict::same) ? SettingVerdict::same : SettingVerdict::fastest;
}

}  // namespace

std::string setting_text(const MergedPoint& merged) {
  return merged.point.environment.empty() ? "nothing set" : merged.point.environment;
}

std::string too_few_starts_note(const std::vector<SettingsGroup>& groups) {
  int64_t few = 0;
  for (const SettingsGroup& group : groups)
    few += std::count_if(group.begin(), group.end(), [](const auto& row) { return !row.has_enough_starts; });
  if (few == 0) return {};
  return fmt::format(
      "{} row{} fewer than {} starts of the ranks. How much starts differ is then unknown, so there is no "
      "verdict. Measure again with several starts of each setting (shardmark launch SUITE -- --repeats 5 "
      "makes "
      "5, which take turns), or report several studies of the suite together.",
      few, few == 1 ? " has" : "s have", kLeastLaunches);
}

std::string_view to_text(SettingVerdict verdict) {
  constexpr std::array<std::string_view, 4> kNames = {"fastest", "SAME", "slower", "AMBIGUOUS"};
  return kNames.at(static_cast<size_t>(verdict));
}

std::vector<SettingsGroup> ranked_settings(const std::vector<MergedPoint>& points, double margin) {
  std::vector<SettingsGroup> groups = settings_groups(points);
  std::vector<LaunchPair> pairs;
  std::vector<RankedSetting*> of_pair;  // the slower one of a pair with the first; nullptr: of another pair
  // Which setting comes first is known only from the times, so its pairs are no fair sample of all pairs.
  // Testing every pair of a group keeps the level whichever setting that is, though only the pairs with the
  // first are shown.
  for (SettingsGroup& group : groups)
    for (size_t i = 0; i < group.size(); ++i)
      for (size_t j = i + 1; j < group.size(); ++j) {
        if (!group[i].has_enough_starts || !group[j].has_enough_starts) continue;
        pairs.push_back({steps_of_starts(*group[i].merged), steps_of_starts(*group[j].merged)});
        of_pair.push_back(i == 0 ? &group[j] : nullptr);
      }
  const std::vector<Comparison> comparisons = compare_launches(pairs, margin);
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (of_pair[i] == nullptr) continue;
    of_pair[i]->verdict = verdict_of(comparisons[i]);
    of_pair[i]->interval = {1 + comparisons[i].interval.low, 1 + comparisons[i].interval.high};
  }
  for (SettingsGroup& group : groups) {
    for (RankedSetting& row : group) row.ratio = row.step_s / group.front().step_s;
    group.front().verdict = verdict_of_first(group);
  }
  return groups;
}

}  // namespace shardmark
