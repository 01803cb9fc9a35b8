// Things that are made once and used again.
#include <gtest/gtest.h>

#include <set>

#include "base/reused.h"

namespace shardmark {
namespace {

// Torch's pool of streams has 32: with more in use two holders would wait for each other.
TEST(Reused, NeverGivesAwayWhatSomebodyHolds) {
  Reused<int> pool;
  int made = 0;
  const auto get = [&] { return pool.get([&] { return std::make_shared<int>(made++); }); };
  std::vector<std::shared_ptr<int>> held;
  std::set<int> seen;
  for (int i = 0; i < 100; ++i) seen.insert(*held.emplace_back(get()));
  EXPECT_EQ(seen.size(), 100U);
  held[40].reset();
  held[70].reset();
  const auto first = get(), second = get();
  EXPECT_EQ((std::set<int>{*first, *second}), (std::set<int>{40, 70})) << "given back, so used again";
  EXPECT_EQ(made, 100);
  EXPECT_EQ(*get(), 100) << "all are held";
}

}  // namespace
}  // namespace shardmark
