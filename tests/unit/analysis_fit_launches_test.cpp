// Tests the fits of scaling laws to several launches per number of ranks, within a node and across nodes: the
// coverage of their confidence intervals, the test for lack of fit, and which further number of ranks is
// suggested if a fit is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "analysis/stats/fit.h"

namespace shardmark {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Truth {
  ScalingForm form;
  double s, beta, delta;
};

double beyond(const Truth& truth, double n) {
  return truth.form.node > 0 ? std::max(n - truth.form.node, 0.0) : 0;
}

double true_step_s(const Truth& truth, double n) {
  const double cost = truth.form.law == ScalingLaw::gustafson
                          ? n / (truth.s + (1 - truth.s) * n - truth.delta * beyond(truth, n))
                          : 1 + truth.s * (n - 1) + truth.beta * n * (n - 1) + truth.delta * beyond(truth, n);
  return truth.form.scaling == Scaling::strong ? 2 * cost / n : 2 * cost;
}

double true_peak(const Truth& truth) {
  const double inside = std::sqrt((1 - truth.s) / truth.beta), node = truth.form.node;
  if (node == 0 || inside < node) return inside;
  return std::max(node, std::sqrt((1 - truth.s - truth.delta * node) / truth.beta));
}

struct Sweep {
  std::vector<double> counts;
  int launches;
  double node;
  double noise;  // relative standard deviation between launches
};

// The noise of the steps within a launch, as a multiple of the noise between launches. Only this part is in
// the interval of a launch.
constexpr double kSteps = 0.5;

double noisy(double step_s, double noise, std::mt19937& random) {
  std::normal_distribution<double> normal;
  return step_s * std::exp(noise * std::hypot(1, kSteps) * normal(random));
}

std::vector<TimedCount> times_of(const Truth& truth, const Sweep& sweep, std::mt19937& random) {
  std::vector<TimedCount> times;
  for (const double n : sweep.counts)
    for (int launch = 0; launch < sweep.launches; ++launch) {
      const double step_s = noisy(true_step_s(truth, n), sweep.noise, random);
      const double half = 1.96 * kSteps * sweep.noise;
      times.push_back({n, {step_s, step_s * (1 - half), step_s * (1 + half)}});
    }
  return times;
}

bool holds(const Estimate& e, double truth) {
  return std::isnan(e.low) ? e.value == truth : e.low <= truth && truth <= e.high;
}

// The results of 1,000 trials: how many fits were refused, and how many intervals of the others contain the
// true value.
struct Coverage {
  int refused = 0;
  std::map<std::string, int> covered;

  double percent(const std::string& what) const { return 100.0 * covered.at(what) / (1000 - refused); }
};

Coverage coverage_of(const Truth& truth, const Sweep& sweep, std::mt19937& random) {
  Coverage coverage;
  for (int trial = 0; trial < 1000; ++trial) {
    const ScalingFit fit = fit_scaling(truth.form, times_of(truth, sweep, random));
    if (!fit.refused.empty()) {
      ++coverage.refused;
      continue;
    }
    for (const auto& [symbol, estimate] : fit.parameters)
      coverage.covered[symbol] += holds(estimate, symbol == "beta"    ? truth.beta
                                                  : symbol == "delta" ? truth.delta
                                                                      : truth.s)
                                      ? 1
                                      : 0;
    if (truth.form.law == ScalingLaw::usl)
      coverage.covered["peak"] += holds(fit.peak, true_peak(truth)) ? 1 : 0;
    const double next = 2 * sweep.counts.back();
    double mean = 0;
    for (int launch = 0; launch < sweep.launches; ++launch)
      mean += noisy(true_step_s(truth, next), sweep.noise, random) / sweep.launches;
    coverage.covered["next count"] +=
        holds(predicted_step_s(fit, next, static_cast<size_t>(sweep.launches)), mean) ? 1 : 0;
  }
  return coverage;
}

std::string name_of(const Truth& truth, const Sweep& sweep) {
  return to_text(truth.form) + " on " + std::to_string(sweep.counts.size()) + " counts, " +
         std::to_string(sweep.launches) + " launches, noise " + std::to_string(sweep.noise);
}

std::vector<Truth> truths_of(const Sweep& sweep) {
  const double delta = sweep.node > 0 ? 0.03 : 0;
  return {{{ScalingLaw::amdahl, Scaling::strong, sweep.node}, 0.05, 0, delta},
          {{ScalingLaw::gustafson, Scaling::weak, sweep.node}, 0.2, 0, delta},
          {{ScalingLaw::usl, Scaling::strong, sweep.node}, 0.1, 0.002, delta}};
}

const std::vector<double> kOverNodes = {1, 4, 8, 16, 32};

// All parameters are far enough from 0, compared with the noise, that an interval can miss the true value on
// both sides.
TEST(ScalingFitLaunches, IntervalsCoverTheTruth) {
  std::mt19937 random(11);
  for (const Sweep& sweep : {Sweep{kOverNodes, 5, 8, 0.01}, Sweep{{1, 2, 4, 8}, 1, 0, 0.01},
                             Sweep{{1, 2, 4}, 5, 0, 0.03}, Sweep{{1, 2, 4}, 2, 0, 0.01},
                             Sweep{{1, 2, 4, 8, 16}, 5, 0, 0.05}, Sweep{{1, 2, 4, 8, 16, 32}, 1, 8, 0.01}})
    for (const Truth& truth : truths_of(sweep)) {
      if (truth.form.law == ScalingLaw::usl && sweep.counts.size() < 5) continue;  // the noise hides beta
      const Coverage coverage = coverage_of(truth, sweep, random);
      EXPECT_LE(coverage.refused, 30) << name_of(truth, sweep);
      for (const auto& [what, count] : coverage.covered) {
        EXPECT_GE(coverage.percent(what), 92.5) << what << ": " << name_of(truth, sweep);
        EXPECT_LE(coverage.percent(what), 97.5) << what << ": " << name_of(truth, sweep);
      }
    }
}

// A parameter whose true value is at its bound can be missed only by the upper end of the interval. In one
// study of 40, even that end is below the bound.
TEST(ScalingFitLaunches, IntervalsCoverABound) {
  std::mt19937 random(12);
  for (const Sweep& sweep : {Sweep{kOverNodes, 5, 8, 0.03}, Sweep{{1, 2, 4}, 5, 0, 0.03}})
    for (Truth truth : truths_of(sweep)) {
      truth.beta = truth.delta = 0;
      if (truth.form.law != ScalingLaw::usl) truth.s = 0;
      const Coverage coverage = coverage_of(truth, sweep, random);
      EXPECT_LE(coverage.refused, 60) << name_of(truth, sweep);
      for (const char* what : {truth.form.law == ScalingLaw::usl ? "beta" : "s", "next count"})
        EXPECT_GE(coverage.percent(what), 93) << what << ": " << name_of(truth, sweep);
    }
}

TEST(ScalingFitLaunches, DegreesOfFreedomAreTimesLessParameters) {
  std::mt19937 random(1);
  const Truth truth = {{ScalingLaw::amdahl, Scaling::strong}, 0.05, 0, 0};
  const ScalingFit three = fit_scaling(truth.form, times_of(truth, {{1, 2, 4}, 5, 0, 0.02}, random));
  ASSERT_EQ(three.refused, "");
  EXPECT_EQ(three.curve.degrees, 13);
  EXPECT_EQ(three.lack.degrees, 1);
  EXPECT_EQ(three.lack.pure_degrees, 12);
  EXPECT_TRUE(three.from_launches);
  const ScalingFit single = fit_scaling(truth.form, times_of(truth, {{1, 2, 4, 8}, 1, 0, 0.02}, random));
  EXPECT_EQ(single.curve.degrees, 2);
  EXPECT_EQ(single.lack.pure_degrees, 0);
  EXPECT_FALSE(single.from_launches);
}

// Two counts with two values each, with means 1 and -2 and weight 4, give F = (4 x 2 x (1 + 4)) / 2 / (4 x 2
// / 2).
TEST(LackOfFit, ByHand) {
  const LackOfFit lack = lack_of_fit({{1, 0, 4}, {1, 2, 4}, {2, -2, 4}, {2, -2, 4}}, 0);
  EXPECT_EQ(lack.degrees, 2);
  EXPECT_EQ(lack.pure_degrees, 2);
  EXPECT_DOUBLE_EQ(lack.lack, 20);
  EXPECT_DOUBLE_EQ(lack.pure_error, 4);
  EXPECT_NEAR(lack.p(), 1.0 / 6, 1e-12);             // 1 / (1 + F) for 2 and 2 degrees of freedom
  EXPECT_NEAR(lack.p(20), 1.0 / 2, 1e-12);           // if the pure error counts as at least 20
  EXPECT_NEAR(fisher_p(4.9646, 1, 10), 0.05, 1e-5);  // from the tables of the F distribution
  EXPECT_NEAR(fisher_p(5.9525, 5, 11), 0.0068, 2e-4);
  EXPECT_NEAR(fisher_p(2.7109, 5, 20), 0.05, 1e-5);
}

TEST(ScalingFitLaunches, LackOfFitRefusesWhatLaunchesContradict) {
  std::mt19937 random(3);
  Truth bent = {{ScalingLaw::usl, Scaling::strong}, 0.03, 0.002, 0};
  const std::vector<TimedCount> times = times_of(bent, {{1, 2, 4, 8, 16}, 5, 0, 0.02}, random);
  const ScalingFit amdahl = fit_scaling({ScalingLaw::amdahl, Scaling::strong}, times);
  EXPECT_THAT(amdahl.refused, HasSubstr("does not describe the points"));
  EXPECT_THAT(amdahl.refused, HasSubstr("with p ="));
  EXPECT_EQ(fit_scaling(bent.form, times).refused, "");
  // If launches agree within 0.1 %, a law that is off by less than 1 % is not refused. The interval then
  // follows from the distances between the counts and the curve.
  bent.beta = 0.0001;
  const ScalingFit nearly = fit_scaling({ScalingLaw::amdahl, Scaling::strong},
                                        times_of(bent, {{1, 2, 4, 8, 16}, 5, 0, 0.001}, random));
  EXPECT_EQ(nearly.refused, "");
  EXPECT_FALSE(nearly.from_launches);
  EXPECT_EQ(nearly.curve.degrees, 3);
}

TEST(ScalingFitLaunches, TwoLevelsAreToldApart) {
  std::mt19937 random(4);
  const Truth truth = {{ScalingLaw::amdahl, Scaling::strong, 8}, 0.01, 0, 0.02};
  const ScalingFit fit = fit_scaling(truth.form, times_of(truth, {kOverNodes, 5, 8, 0.0001}, random));
  ASSERT_EQ(fit.refused, "");
  EXPECT_EQ(to_text(fit), "Amdahl, 2 levels");
  EXPECT_NEAR(fit.parameters[0].estimate.value, 0.01, 5e-4);
  EXPECT_EQ(fit.parameters[1].symbol, "delta");
  EXPECT_NEAR(fit.parameters[1].estimate.value, 0.02, 5e-4);
  EXPECT_NEAR(fit.limit.value, 1 / 0.03, 0.3);
  EXPECT_NEAR(fitted_speed_up(fit, 64), 64 / (1 + 0.01 * 63 + 0.02 * 56), 0.2);
  // The crossing is beyond the first node: 1.25 = 0.84 + 0.03 n - 0.01.
  const double crossing = fitted_crossing(fit, 1, 0.8).value;
  EXPECT_NEAR(crossing, (1.25 - 0.83) / 0.03, 0.2);
  EXPECT_NEAR(fitted_speed_up(fit, crossing) / crossing, 0.8, 1e-6);
  const Truth usl = {{ScalingLaw::usl, Scaling::strong, 8}, 0.01, 1e-3, 0.02};
  const ScalingFit bent = fit_scaling(usl.form, times_of(usl, {kOverNodes, 5, 8, 0.0001}, random));
  EXPECT_NEAR(bent.peak.value, true_peak(usl), 1);
}

TEST(ScalingFitLaunches, ARefusalSaysWhichCountWouldDo) {
  std::mt19937 random(5);
  const Truth one = {{ScalingLaw::amdahl, Scaling::strong}, 0.05, 0, 0};
  const ScalingFit few = fit_scaling(one.form, times_of(one, {{1, 2, 4}, 1, 0, 0.02}, random));
  EXPECT_THAT(few.refused, HasSubstr("3 counts; a fit needs 4, or 3 in several launches"));
  EXPECT_THAT(few.further, ElementsAre(8));
  const ScalingForm two{ScalingLaw::amdahl, Scaling::strong, 8};
  const Truth truth = {two, 0.05, 0, 0.02};
  // Between 8, 16 and 32 ranks, only the number of ranks beyond the first node grows.
  const ScalingFit whole = fit_scaling(two, times_of(truth, {{8, 16, 32}, 5, 8, 0.02}, random));
  EXPECT_THAT(whole.refused, HasSubstr("cannot distinguish ranks beyond the node from ranks inside it"));
  EXPECT_THAT(whole.further, ElementsAre(4));
  const ScalingFit inside = fit_scaling(two, times_of(truth, {{2, 4, 8}, 5, 8, 0.02}, random));
  EXPECT_THAT(inside.refused, HasSubstr("cannot distinguish ranks beyond the node"));
  EXPECT_THAT(inside.further, ElementsAre(16));
  // A law with as many parameters as there are counts is fitted, and the counts that would test it are
  // suggested.
  const ScalingFit untested = fit_scaling(two, times_of(truth, {{1, 8, 16}, 5, 8, 0.02}, random));
  EXPECT_EQ(untested.refused, "");
  EXPECT_THAT(untested.further, ElementsAre(32, 4));
  const ScalingFit tested = fit_scaling(two, times_of(truth, {kOverNodes, 5, 8, 0.02}, random));
  EXPECT_THAT(tested.further, IsEmpty());
}

TEST(ScalingFitLaunches, TheLargestCountIsHeldOut) {
  std::mt19937 random(6);
  const Truth truth = {{ScalingLaw::amdahl, Scaling::strong}, 0.05, 0, 0};
  std::vector<TimedCount> times = times_of(truth, {{1, 2, 4, 8}, 5, 0, 0.01}, random);
  const Extrapolation fair = hold_out_largest(truth.form, times);
  EXPECT_LT(fair.predicted_s.low, fair.measured_s);
  EXPECT_GT(fair.predicted_s.high, fair.measured_s);
  for (TimedCount& time : times)
    if (time.units == 8) time.step_s.value *= 1.5;
  const Extrapolation off = hold_out_largest(truth.form, times);
  EXPECT_GT(off.measured_s, off.predicted_s.high);
  EXPECT_TRUE(
      std::isnan(hold_out_largest(truth.form, times_of(truth, {{1, 2, 4}, 1, 0, 0.01}, random)).measured_s));
}

}  // namespace
}  // namespace shardmark
