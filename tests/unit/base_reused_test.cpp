// Tests the pool of objects that are made once and used again.
#include <gtest/gtest.h>

#include <set>

#include "base/reused.h"

namespace shardmark {
namespace {

// PyTorch has a pool of only 32 CUDA streams. Two users of the same stream would wait for each other, so an
// object in use is never handed out again.
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
