// Tests the fits of scaling laws to curves with known parameters. Exact curves give back the parameters, the
// intervals for noisy curves contain them as often as they claim, and curves that no law describes are
// refused.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "analysis/stats/fit.h"

namespace shardmark {
namespace {

struct KnownLaw {
  ScalingLaw law;
  Scaling scaling;
  double alpha, beta;  // alpha is the serial fraction s in the laws of Amdahl and Gustafson
};

double step_s_by(const KnownLaw& truth, double n) {
  const double cost = truth.law == ScalingLaw::gustafson
                          ? n / (truth.alpha + (1 - truth.alpha) * n)
                          : 1 + truth.alpha * (n - 1) + truth.beta * n * (n - 1);
  return truth.scaling == Scaling::strong ? 2 * cost / n : 2 * cost;
}

// Returns the times for 1, 2, 4, ... ranks. `noise` is the relative standard deviation of a time, and the
// interval of the time shows it.
std::vector<TimedCount> times_of(const KnownLaw& truth, int num_counts, double noise, std::mt19937& random) {
  std::normal_distribution<double> normal;
  std::vector<TimedCount> times;
  for (int k = 0; k < num_counts; ++k) {
    const double n = std::exp2(k), step_s = step_s_by(truth, n) * std::exp(noise * normal(random));
    times.push_back({n, {step_s, step_s * (1 - 1.96 * noise), step_s * (1 + 1.96 * noise)}});
  }
  return times;
}

std::vector<TimedCount> exact_times(const KnownLaw& truth, int num_counts) {
  std::mt19937 random(1);
  return times_of(truth, num_counts, 0, random);
}

constexpr KnownLaw kTruths[] = {{ScalingLaw::amdahl, Scaling::strong, 0.08, 0},
                                {ScalingLaw::amdahl, Scaling::strong, 0.005, 0},
                                {ScalingLaw::gustafson, Scaling::weak, 0.3, 0},
                                {ScalingLaw::usl, Scaling::strong, 0.03, 0.001},
                                {ScalingLaw::usl, Scaling::weak, 0.02, 0.0004}};

TEST(ScalingFit, RecoversWhatMadeTheCurve) {
  for (const KnownLaw& truth : kTruths) {
    const ScalingFit fit = fit_scaling({truth.law, truth.scaling}, exact_times(truth, 6));
    ASSERT_EQ(fit.refused, "");
    EXPECT_NEAR(fit.parameters[0].estimate.value, truth.alpha, 1e-9);
    EXPECT_NEAR(fit.parameters[0].estimate.high - fit.parameters[0].estimate.low, 0, 1e-6);
    if (truth.law == ScalingLaw::usl) {
      EXPECT_NEAR(fit.parameters[1].estimate.value, truth.beta, 1e-9);
      EXPECT_NEAR(fit.peak.value, std::sqrt((1 - truth.alpha) / truth.beta), 1e-3);
    }
    if (truth.law == ScalingLaw::amdahl) {
      EXPECT_NEAR(fit.limit.value, 1 / truth.alpha, 1e-3);
    }
    EXPECT_NEAR(predicted_step_s(fit, 48, 1).value, step_s_by(truth, 48), 1e-6);
    const double crossing = fitted_crossing(fit, 1, 0.8).value;
    EXPECT_NEAR(fitted_speed_up(fit, crossing) / crossing, 0.8, 1e-6) << to_text(truth.law);
  }
}

TEST(ScalingFit, PointsThatScatterMoreWeighLess) {
  const KnownLaw truth = {ScalingLaw::amdahl, Scaling::strong, 0.05, 0};
  std::vector<TimedCount> times = exact_times(truth, 6);
  times[5].step_s = {times[5].step_s.value * 1.3, times[5].step_s.value * 0.8, times[5].step_s.value * 1.8};
  const ScalingFit doubted = fit_scaling({truth.law, truth.scaling}, times);
  EXPECT_EQ(doubted.refused, "");
  EXPECT_NEAR(doubted.parameters[0].estimate.value, 0.05, 0.002);
}

TEST(ScalingFit, RefusesTooFewCounts) {
  const KnownLaw truth = {ScalingLaw::amdahl, Scaling::strong, 0.05, 0};
  EXPECT_EQ(fit_scaling({ScalingLaw::amdahl, Scaling::strong}, exact_times(truth, 3)).refused,
            "3 counts; a fit needs 4, or 3 in several launches");
  EXPECT_EQ(fit_scaling({ScalingLaw::usl, Scaling::strong}, exact_times(truth, 4)).refused,
            "4 counts; a fit needs 5, or 3 in several launches");
  std::vector<TimedCount> broken = exact_times(truth, 4);
  broken[2].step_s.value = 0;
  EXPECT_EQ(fit_scaling({ScalingLaw::amdahl, Scaling::strong}, broken).refused,
            "3 counts; a fit needs 4, or 3 in several launches");
  broken[2].step_s.value = Measures::kNone;
  EXPECT_EQ(fit_scaling({ScalingLaw::amdahl, Scaling::strong}, broken).refused,
            "3 counts; a fit needs 4, or 3 in several launches");
  EXPECT_EQ(fit_scaling({ScalingLaw::amdahl, Scaling::strong}, {}).refused,
            "0 counts; a fit needs 4, or 3 in several launches");
}

TEST(ScalingFit, RefusesWhatTheLawDoesNotDescribe) {
  std::vector<TimedCount> cliff, superlinear, slowdown;
  for (const double n : {1.0, 2.0, 4.0, 8.0, 16.0}) {
    cliff.push_back({n, {n < 16 ? 1 / n : 0.5}});
    superlinear.push_back({n, {1 / std::pow(n, 1.05)}});
    slowdown.push_back({n, {(1 + 1.2 * (n - 1)) / n}});
  }
  const auto refused = [](const std::vector<TimedCount>& times) {
    return fit_scaling({ScalingLaw::amdahl, Scaling::strong}, times).refused;
  };
  EXPECT_NE(refused(cliff).find("does not describe the points"), std::string::npos) << refused(cliff);
  EXPECT_NE(refused(superlinear).find("faster than linear"), std::string::npos) << refused(superlinear);
  EXPECT_NE(refused(slowdown).find("slower than one"), std::string::npos) << refused(slowdown);
}

// Images per second on 1 to 128 GPUs, from the documentation of a training framework which does not name the
// hardware. The cost grows less than linearly, so Gustafson's law does not describe it. The USL describes it
// with beta at its bound of 0.
TEST(ScalingFit, APublishedTable) {
  std::vector<TimedCount> times;
  double n = 1;
  for (const double images_per_s : {450., 880., 1720., 3360., 6400., 12160., 22400., 41600.}) {
    times.push_back({n, {n / images_per_s}});
    n *= 2;
  }
  EXPECT_NE(fit_scaling({ScalingLaw::gustafson, Scaling::weak}, times).refused, "");
  const ScalingFit usl = fit_scaling({ScalingLaw::usl, Scaling::weak}, times);
  ASSERT_EQ(usl.refused, "");
  EXPECT_NEAR(usl.parameters[0].estimate.value, 0.003, 0.0002);
  EXPECT_EQ(usl.parameters[1].estimate.value, 0);
  EXPECT_LT(usl.deviation, 0.05);
  EXPECT_NEAR(fitted_speed_up(usl, 128) / 128, 0.72, 0.02);  // the documentation claims 72 % for 128 GPUs
}

TEST(ScalingFit, KnowsWhereTheCurveNeverFalls) {
  const KnownLaw truth = {ScalingLaw::gustafson, Scaling::weak, 0.1, 0};  // the efficiency stays above 90 %
  const ScalingFit fit = fit_scaling({truth.law, truth.scaling}, exact_times(truth, 5));
  EXPECT_TRUE(std::isinf(fitted_crossing(fit, 1, 0.8).value));
}

}  // namespace
}  // namespace shardmark
