// Tests the estimate of the remaining time of a sweep.
#include <gtest/gtest.h>

#include "base/text.h"
#include "base/units.h"
#include "plan/plan.h"
#include "sweep/time_left.h"

namespace shardmark {
namespace {

TEST(TimeLeft, IsNotGuessedBeforeAPointIsOver) {
  TimeLeft left(100);
  left.begin(2);
  EXPECT_FALSE(left.left_s(1).has_value());
}

TEST(TimeLeft, FollowsThePointsThatAreOver) {
  TimeLeft left(100);  // 50 points of at most 2 s
  for (int point = 0; point < 10; ++point) {
    left.begin(2);
    left.end(point + 1.0);  // each took one second
  }
  EXPECT_DOUBLE_EQ(left.left_s(10).value(), 40);
  left.begin(2);
  EXPECT_DOUBLE_EQ(left.left_s(10.5).value(), 39.5) << "it goes on while a point runs";
  EXPECT_DOUBLE_EQ(left.left_s(60).value(), 39) << "a point that hangs takes nothing from the others";
}

// A point of two hours follows points of two seconds.
TEST(TimeLeft, KnowsThatAPointIsLong) {
  TimeLeft left(4 + 7200);
  for (int point = 0; point < 2; ++point) {
    left.begin(2);
    left.end(2 * (point + 1.0));
  }
  left.begin(7200);
  EXPECT_DOUBLE_EQ(left.left_s(4).value(), 7200);
  EXPECT_DOUBLE_EQ(left.left_s(3604).value(), 3600);
}

TEST(TimeLeft, IsPrintedAsAClock) {
  EXPECT_EQ(progress_text(14, 52, 41, 70), "[14/52] 0:41, about 1:10 left");
  EXPECT_EQ(progress_text(0, 52, 3, {}), "[0/52] 0:03");
  EXPECT_EQ(format_clock(3723), "1:02:03");
  EXPECT_EQ(format_clock(59.6), "1:00");
  EXPECT_EQ(format_clock(-1), "0:00");
}

TEST(TimeLeft, APlanSaysHowLongItMayTake) {
  std::vector<Point> points(3);
  points[0].sampling.time_limit_s = 10;
  points[1].sampling.duration_s = 60;
  points[2].impossible = "more ranks than the world";
  EXPECT_EQ(extent_text(points), "3 points, at most " + format_seconds(70) + " of timed steps");
}

TEST(Shortened, ToWhatATerminalTakes) {
  EXPECT_EQ(shortened("gpt2 ddp", 8), "gpt2 ddp");
  EXPECT_EQ(shortened("gpt2 fsdp", 8), "gpt2 ...");
  EXPECT_EQ(shortened("über übel", 9), "über übel");
  EXPECT_EQ(shortened("über übel!", 9), "über ü...");
  EXPECT_EQ(shortened("gpt2", 2), "..");
  EXPECT_EQ(shortened("", 0), "");
}

}  // namespace
}  // namespace shardmark
