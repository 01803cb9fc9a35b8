// Tests how often a load and a collective are repeated in a round, so that both sides take equally long.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sweep/round_counts.h"

namespace shardmark {
namespace {

// Operations take from 2 us (a small message) to 2 s (a large message over a slow link), and units of the
// load take from 1 us to 0.3 s.
TEST(RoundCounts, MakeBothSidesEquallyLong) {
  for (double operation_s = 2e-6; operation_s < 2; operation_s *= 1.37)
    for (double unit_s = 1e-6; unit_s < 0.3; unit_s *= 1.41) {
      const RoundCounts counts = round_counts(unit_s, operation_s);
      if (operation_s * 50000 < kLeastUnits * unit_s)
        continue;  // would need more operations than a round may have
      const double load_s = static_cast<double>(counts.units) * unit_s,
                   collective_s = static_cast<double>(counts.operations) * operation_s;
      EXPECT_TRUE(are_equally_long(load_s, collective_s))
          << unit_s << " s a unit, " << operation_s << " s an operation: " << load_s << ", " << collective_s;
      EXPECT_GE(counts.units, kLeastUnits);
      EXPECT_LE(load_s, 2.2 * std::max({0.1, kLeastUnits * unit_s, operation_s})) << "no longer than needed";
    }
}

// Times of a collective of 64 KiB and a block of GPT-2 on two cores. With an earlier rule, the two sides
// differed by a factor of 84.
TEST(RoundCounts, DoNotStopAtFewOperations) {
  const RoundCounts counts = round_counts(0.01825, 17.35e-6);
  EXPECT_GT(counts.operations, 1000);
  EXPECT_NEAR(
      static_cast<double>(counts.operations) * 17.35e-6 / (static_cast<double>(counts.units) * 0.01825), 1,
      kEqualSides);
}

TEST(RoundCounts, AreKnownOrNot) {
  EXPECT_FALSE(RoundCounts().are_known());
  EXPECT_TRUE(round_counts(0, 0).are_known());
}

}  // namespace
}  // namespace shardmark
