// Tests the schedules of the learning rate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "executor/optim/lr_scheduler.h"

namespace shardmark {
namespace {

using ::testing::HasSubstr;

LRScheduler schedule(const std::string& text, int64_t warmup, int64_t steps) {
  return {choice_from_text(text), /*peak=*/0.8, warmup, steps};
}

TEST(LRScheduler, WarmsUpByEqualAmounts) {
  const LRScheduler rates = schedule("constant", 4, 10);
  EXPECT_DOUBLE_EQ(rates.at(0), 0.2);
  EXPECT_DOUBLE_EQ(rates.at(2), 0.6);
  for (int64_t step = 3; step < 12; ++step) EXPECT_DOUBLE_EQ(rates.at(step), 0.8);
}

TEST(LRScheduler, CosineFallsFromThePeakToItsEnd) {
  const LRScheduler rates = schedule("cosine(end=0.25)", 2, 12);
  EXPECT_DOUBLE_EQ(rates.at(2), 0.8);
  EXPECT_DOUBLE_EQ(rates.at(7), 0.5);  // halfway between 0.8 and 0.2
  EXPECT_NEAR(rates.at(11), 0.2 + 0.3 * (1 + std::cos(0.9 * M_PI)), 1e-12);
  EXPECT_DOUBLE_EQ(rates.at(12), 0.2);
  EXPECT_DOUBLE_EQ(rates.at(50), 0.2);  // it does not rise again after the end
}

TEST(LRScheduler, StepDropsByItsFactor) {
  const LRScheduler rates = schedule("step(every=3, factor=0.5)", 0, 10);
  EXPECT_DOUBLE_EQ(rates.at(2), 0.8);
  EXPECT_DOUBLE_EQ(rates.at(3), 0.4);
  EXPECT_DOUBLE_EQ(rates.at(9), 0.1);
}

TEST(LRScheduler, RefusesWhatCannotBe) {
  const auto message = [](const std::string& text, int64_t warmup) -> std::string {
    try {
      schedule(text, warmup, 10);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(message("linear", 0), HasSubstr("known: constant, cosine, step"));
  EXPECT_THAT(message("step", 0), HasSubstr("every"));
  EXPECT_THAT(message("cosine(end=2)", 0), HasSubstr("end"));
  EXPECT_THAT(message("constant", 11), HasSubstr("a warm-up of 11 steps"));
  EXPECT_THAT(message("constant", 10), "");
}

}  // namespace
}  // namespace shardmark
