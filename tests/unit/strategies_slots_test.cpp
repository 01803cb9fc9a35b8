// Tests the slots in which units are unsharded: every use finds its block's units in its slot, and units that
// are still there are not gathered again.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "strategies/slots.h"

namespace shardmark::strategies {
namespace {

int64_t num_unshards(const std::vector<SlotUse>& uses) {
  return std::count_if(uses.begin(), uses.end(), [](const SlotUse& use) { return use.unshards; });
}

TEST(Slots, HoldWhatIsUsedAndWhatIsUnshardedAhead) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 500; ++trial) {
    const auto num_slots = static_cast<int64_t>(1 + random() % 4);
    std::vector<size_t> blocks(random() % 40);
    for (size_t& block : blocks) block = random() % 6;
    const std::vector<SlotUse> uses = plan_slots(blocks, num_slots);
    ASSERT_EQ(uses.size(), blocks.size());
    std::map<int64_t, size_t> held;  // slot and block
    size_t num_started = 0;
    for (size_t now = 0; now < uses.size(); ++now) {
      // A gather that starts early must not use a slot whose block is still needed before.
      for (; num_started < std::min(uses.size(), now + static_cast<size_t>(num_slots)); ++num_started) {
        const SlotUse& next = uses[num_started];
        if (!next.unshards) continue;
        for (size_t wanted = now; wanted < num_started; ++wanted)
          ASSERT_NE(uses[wanted].slot, next.slot) << "use " << num_started << " of trial " << trial;
        held[next.slot] = next.block;
      }
      ASSERT_EQ(held.at(uses[now].slot), blocks[now]);
      const auto again = std::find(blocks.begin() + static_cast<int64_t>(now) + 1, blocks.end(), blocks[now]);
      const bool stays = again != blocks.end() && !uses[static_cast<size_t>(again - blocks.begin())].unshards;
      EXPECT_EQ(uses[now].reshards, !stays);
    }
  }
}

// Two rounds of forward and backward over five blocks. With S slots, the last S blocks stay for backward and
// the first S blocks stay for the next micro-batch.
TEST(Slots, KeepWhatTheTurnUsesAgain) {
  const std::vector<size_t> blocks = {0, 1, 2, 3, 4, 4, 3, 2, 1, 0, 0, 1, 2, 3, 4, 4, 3, 2, 1, 0};
  for (int64_t num_slots = 1; num_slots <= 5; ++num_slots)
    EXPECT_EQ(num_unshards(plan_slots(blocks, num_slots)), 20 - 3 * num_slots) << num_slots;
  EXPECT_EQ(num_unshards(plan_slots(blocks, 9)), 5);
}

}  // namespace
}  // namespace shardmark::strategies
