// The style of each strategy in plots: the same in every report, whatever else that holds.
#pragma once

#include <array>
#include <string_view>

namespace shardmark {

inline constexpr std::array<std::string_view, 7> kStyledStrategies = {
    "ddp", "fsdp", "single", "zero3", "fsdp(shard=gradients)", "fsdp(shard=optimizer)", "hpz"};

// Of "ddp", "fsdp(shard=gradients)": options at their defaults are left out. Others have the styles behind
// these, by their place among a report's strategies: a colour of before with another marker and dash.
inline int style_of_strategy(std::string_view name, int place) {
  for (size_t i = 0; i < kStyledStrategies.size(); ++i)
    if (kStyledStrategies[i] == name) return static_cast<int>(i);
  return static_cast<int>(kStyledStrategies.size()) + place;
}

}  // namespace shardmark
