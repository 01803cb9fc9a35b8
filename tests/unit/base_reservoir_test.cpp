// Tests the reservoir sampler: every item has the same chance, the memory is bounded, and equal seeds choose
// equal positions.
#include <gtest/gtest.h>

#include "base/reservoir.h"

namespace shardmark {
namespace {

TEST(Reservoir, KeepsAllThatFitInTheirOrder) {
  Reservoir<int> reservoir(10, 1);
  for (int i = 0; i < 7; ++i) reservoir.add(i);
  EXPECT_EQ(reservoir.take(), (std::vector<int>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(reservoir.take(3), (std::vector<int>{1, 3, 5}));  // the middle of each third
  EXPECT_EQ(reservoir.take(100).size(), 7);
}

TEST(Reservoir, GivesEveryItemTheSameChance) {
  constexpr int kItems = 1000, kKept = 10, kRuns = 2000;
  std::vector<int> in_quarter(4);
  for (uint64_t seed = 0; seed < kRuns; ++seed) {
    Reservoir<int> reservoir(kKept, seed);
    for (int i = 0; i < kItems; ++i) reservoir.add(i);
    const auto kept = reservoir.take();
    ASSERT_EQ(kept.size(), kKept);
    for (const int item : kept) ++in_quarter[static_cast<size_t>(4 * item / kItems)];
  }
  for (const int count : in_quarter)
    EXPECT_NEAR(count, kKept * kRuns / 4, 250);  // 250 is 4 standard deviations
}

TEST(Reservoir, EqualSeedsChooseEqualPlaces) {
  Reservoir<int> one(5, 7), other(5, 7), third(5, 8);
  for (int i = 0; i < 1000; ++i) {
    one.add(i);
    other.add(i + 10000);
    third.add(i);
  }
  auto shifted = one.take();
  for (int& item : shifted) item += 10000;
  EXPECT_EQ(other.take(), shifted);
  EXPECT_NE(third.take(), one.take());
}

}  // namespace
}  // namespace shardmark
