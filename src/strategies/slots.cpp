// Walks over the uses, each at the moment from which it may be unsharded.
#include "strategies/slots.h"

#include <algorithm>
#include <optional>

namespace shardmark::strategies {

std::vector<SlotUse> plan_slots(const std::vector<size_t>& groups, int64_t num_slots) {
  std::vector<SlotUse> uses;
  std::vector<std::optional<size_t>> last(static_cast<size_t>(num_slots));  // [slot]: use that it is held for
  for (size_t use = 0; use < groups.size(); ++use) {
    const auto now = groups.begin() + std::max<int64_t>(0, static_cast<int64_t>(use) - num_slots + 1);
    const auto next_use = [&](const std::optional<size_t>& held) {
      return held ? std::find(now, groups.end(), groups[*held]) : groups.end();
    };
    auto slot = std::find_if(last.begin(), last.end(), [&](const std::optional<size_t>& held) {
      return held && groups[*held] == groups[use];
    });
    const bool stays = slot != last.end();
    if (!stays)
      slot = std::max_element(last.begin(), last.end(),
                              [&](const auto& a, const auto& b) { return next_use(a) < next_use(b); });
    if (stays) uses[**slot].reshards = false;
    *slot = use;
    uses.push_back({groups[use], slot - last.begin(), !stays});
  }
  return uses;
}

}  // namespace shardmark::strategies
