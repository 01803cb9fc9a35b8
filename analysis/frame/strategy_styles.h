// The style of each strategy in plots: the same in every report, whatever else that holds.
#pragma once

#include <array>
#include <string_view>

namespace shardmark {

inline constexpr std::array<std::string_view, 7> kStyledStrategies = {
    "ddp", "fsdp", "single", "zero3", "fsdp(shard=gradients)", "fsdp(shard=optimizer)", "hpz"};

// The style of a strategy such as "ddp" or "fsdp(shard=gradients)", without options at their defaults. A
// strategy that is not in the list takes a style behind these, by its place among the strategies of the
// report: a colour that is in use already, with another marker and dash.
inline int style_of_strategy(std::string_view name, int place) {
  for (size_t i = 0; i < kStyledStrategies.size(); ++i)
    if (kStyledStrategies[i] == name) return static_cast<int>(i);
  return static_cast<int>(kStyledStrategies.size()) + place;
}

}  // namespace shardmark
