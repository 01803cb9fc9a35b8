// Walks over the uses. Each is given a slot as of the moment from which its units may be gathered.
#include "strategies/slots.h"

#include <algorithm>
#include <optional>

namespace shardmark::strategies {
namespace {

// When each block is used next. The time of successive questions must not decrease.
class NextUses {
 public:
  explicit NextUses(const std::vector<size_t>& blocks) : never_(blocks.size()) {
    for (size_t use = 0; use < blocks.size(); ++use) {
      if (blocks[use] >= uses_of_.size()) uses_of_.resize(blocks[use] + 1);
      uses_of_[blocks[use]].uses.push_back(use);
    }
  }

  // The first use of a block from `now` on, or the number of all uses if there is none.
  size_t from(size_t now, size_t block) {
    auto& [uses, first] = uses_of_[block];
    while (first < uses.size() && uses[first] < now) ++first;
    return first < uses.size() ? uses[first] : never_;
  }

 private:
  struct OfBlock {
    std::vector<size_t> uses;
    size_t first = 0;  // the first use that is not in the past
  };
  std::vector<OfBlock> uses_of_;
  size_t never_;
};

}  // namespace

std::vector<SlotUse> plan_slots(const std::vector<size_t>& blocks, int64_t num_slots) {
  std::vector<SlotUse> uses;
  uses.reserve(blocks.size());
  NextUses next_uses(blocks);
  // [slot]: the index of the last use that it was given to.
  std::vector<std::optional<size_t>> last(static_cast<size_t>(num_slots));
  for (size_t use = 0; use < blocks.size(); ++use) {
    // The gather of a use may begin while the use `ahead` places before it computes.
    const size_t ahead = static_cast<size_t>(num_slots) - 1, now = use < ahead ? 0 : use - ahead;
    const auto next_use = [&](const std::optional<size_t>& held) {
      return held ? next_uses.from(now, blocks[*held]) : blocks.size();
    };
    // A block that still lies in a slot stays there. Otherwise it takes the slot whose block is needed
    // last; an empty slot counts as one whose block is never needed, and the first of several equal ones is
    // taken. The uses between `now` and `use` keep their slots, because they come sooner than all others.
    auto slot = std::find_if(last.begin(), last.end(), [&](const std::optional<size_t>& held) {
      return held && blocks[*held] == blocks[use];
    });
    const bool stays = slot != last.end();
    if (!stays)
      slot = std::max_element(last.begin(), last.end(),
                              [&](const auto& a, const auto& b) { return next_use(a) < next_use(b); });
    if (stays) uses[**slot].reshards = false;
    *slot = use;
    uses.push_back({blocks[use], slot - last.begin(), !stays});
  }
  return uses;
}

}  // namespace shardmark::strategies
