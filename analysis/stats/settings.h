// Which setting is fastest: points that differ in the variables, threads or binding of their ranks alone. A
// setting counts by its starts, as a side of `compare` does by its launches, and the same test decides.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/frame/merged.h"
#include "analysis/stats/compare.h"

namespace shardmark {

// fastest: all others of its group are slower. same: no other is fastest, and it differs from the setting
// with the smallest median by less than the margin. ambiguous: its starts do not decide.
enum class SettingVerdict { fastest, same, slower, ambiguous };
std::string_view to_text(SettingVerdict verdict);     // "fastest", "SAME", "slower", "AMBIGUOUS"
std::string setting_text(const MergedPoint& merged);  // "NCCL_ALGO=Ring threads=2", "nothing set"

struct RankedSetting {
  const MergedPoint* merged;
  double step_s;      // median over its starts
  double ratio;       // step_s / that of the setting with the smallest
  Interval interval;  // 95 %, of that ratio; NaN where a setting has too few starts, and of the first row
  SettingVerdict verdict;
  bool has_enough_starts;  // kLeastLaunches
};

// One group of points that differ in nothing else, the smallest median first.
using SettingsGroup = std::vector<RankedSetting>;

// Groups of two or more settings. All pairs of settings of all groups are tested together: whichever is put
// first, the chance that any setting is called slower by accident is at most kFamilyLevel.
std::vector<SettingsGroup> ranked_settings(const std::vector<MergedPoint>& points,
                                           double margin = kDefaultMargin);

// What to do where settings have fewer starts than any verdict needs; empty where none has.
std::string too_few_starts_note(const std::vector<SettingsGroup>& groups);

}  // namespace shardmark
