// Tests when the intervals of a sustained run end and when the run ends, with a simulated clock and steps of
// any length.
#include <gtest/gtest.h>

#include "sweep/stopping.h"

namespace shardmark {
namespace {

struct Walked {
  std::vector<double> ends_s;
  int64_t num_windows = 0, most_steps = 0;
};

// Simulates windows of steps that take step_s each until the run is done.
Walked walk(double duration_s, double step_s) {
  Intervals intervals(duration_s);
  Walked walked;
  double elapsed_s = 0;
  while (!intervals.done(elapsed_s)) {
    const int64_t steps = intervals.next_window(elapsed_s, step_s);
    walked.most_steps = std::max(walked.most_steps, steps);
    elapsed_s += static_cast<double>(steps) * step_s;
    ++walked.num_windows;
    if (!intervals.ends(elapsed_s)) continue;
    walked.ends_s.push_back(elapsed_s);
    intervals.begin_next(elapsed_s);
  }
  EXPECT_FALSE(walked.ends_s.empty());
  EXPECT_DOUBLE_EQ(walked.ends_s.back(), elapsed_s) << "steps after the last interval";
  return walked;
}

TEST(Intervals, WindowsOfShortStepsAreBounded) {
  EXPECT_EQ(walk(8, 0.4e-6).most_steps, Intervals::kMostSteps);
}

TEST(Intervals, AreAHundredOfHoursOfMilliseconds) {
  const Walked walked = walk(7200, 1.3e-3);
  EXPECT_EQ(walked.ends_s.size(), 100);
  EXPECT_GE(walked.ends_s.back(), 7200);
  EXPECT_LT(walked.ends_s.back(), 7200 + 0.6);
  EXPECT_LE(walked.most_steps, 386);  // half a second
}

TEST(Intervals, AreNoShorterThanAWindow) {
  EXPECT_EQ(Intervals(3).count(), 6);
  EXPECT_EQ(walk(3, 0.01).ends_s.size(), 6);
  EXPECT_EQ(walk(0.1, 0.01).ends_s.size(), 1);
}

TEST(Intervals, OfStepsLongerThanThemAreASteps) {
  const Walked walked = walk(60, 7);  // intervals of 0.6 s
  EXPECT_EQ(walked.ends_s.size(), 9);
  EXPECT_EQ(walked.num_windows, 9);
  EXPECT_EQ(walk(60, 100).ends_s.size(), 1);
}

TEST(Intervals, AnyLengthEnds) {
  for (double duration_s = 0.3; duration_s < 1e5; duration_s *= 1.7)
    for (double step_s = 1e-3; step_s < 10; step_s *= 3.1) {
      const Walked walked = walk(duration_s, step_s);
      EXPECT_LE(walked.ends_s.size(), Intervals::kMost);
      EXPECT_LE(walked.ends_s.back(), duration_s + std::max(step_s, 0.6));
    }
}

// The rule for points that are measured until their median is known does not depend on a duration.
TEST(StoppingRule, EndsWhenTheMedianIsKnownOrAtALimit) {
  Sampling sampling;
  StoppingRule precise(sampling);
  precise.add(std::vector<double>(10, 0.01));
  EXPECT_TRUE(precise.done());
  StoppingRule wild(sampling);
  for (int i = 0; i < 10; ++i) wild.add({0.01, 0.02});
  EXPECT_FALSE(wild.done());
  EXPECT_EQ(wild.next_window(0.01), 50);
  for (int i = 0; i < 90; ++i) wild.add({0.01, 0.02});
  EXPECT_TRUE(wild.done());  // after 200 steps
}

TEST(WarmUp, GoesOnWhileWindowsGetFaster) {
  WarmUp warm_up{Sampling{}};
  warm_up.add({1.0, 1.0, 1.0});
  EXPECT_FALSE(warm_up.done());
  warm_up.add({0.9, 0.9, 0.9});
  EXPECT_FALSE(warm_up.done());
  warm_up.add({0.89, 0.89, 0.89});
  EXPECT_TRUE(warm_up.done());
  EXPECT_EQ(warm_up.num_steps(), 9);
}

}  // namespace
}  // namespace shardmark
