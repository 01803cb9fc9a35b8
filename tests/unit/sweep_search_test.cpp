// The search for the largest batch finds it exactly, or within 3 % for large batches, in few attempts.
#include <gtest/gtest.h>

#include "sweep/search.h"

namespace shardmark {
namespace {

struct Found {
  int64_t fits, fails;
  int num_tries = 0;
};

Found find(int64_t most) {
  LargestBatch search;
  int num_tries = 0;
  while (const auto batch = search.next()) {
    search.report(batch, batch <= most);
    if (++num_tries > 100) ADD_FAILURE() << "no end for " << most;
    if (num_tries > 100) break;
  }
  return {search.fits(), search.fails(), num_tries};
}

TEST(LargestBatch, IsExactUpTo32) {
  for (int64_t most = 0; most <= 32; ++most) {
    EXPECT_EQ(find(most).fits, most);
    EXPECT_EQ(find(most).fails, most + 1);
  }
}

TEST(LargestBatch, IsWithinThreePercentAbove) {
  for (const int64_t most : {33, 100, 1000, 12345, 700000}) {
    const Found found = find(most);
    EXPECT_LE(found.fits, most);
    EXPECT_GT(found.fails, most);
    EXPECT_LE(found.fails - found.fits, 1 + found.fits / 32);
    EXPECT_LE(found.num_tries, 28);
  }
}

TEST(LargestBatch, EndsWhereNothingEverFails) {
  EXPECT_EQ(find(int64_t{1} << 40).fails, 0);
  EXPECT_EQ(find(int64_t{1} << 40).fits, 1 << 20);
}

}  // namespace
}  // namespace shardmark
