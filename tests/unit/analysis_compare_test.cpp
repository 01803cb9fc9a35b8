// Tests `compare` on simulated launches whose true difference is known: the rate of false alarms when nothing
// has changed, the power to find the difference that it states, and each rule for a verdict.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <random>

#include "analysis/stats/compare.h"
#include "base/error.h"
#include "readme_block.h"

namespace shardmark {
namespace {

using Random = std::mt19937_64;
using Noise = std::function<double(Random&)>;  // draws the logarithm of the noise factor of one launch

Noise normal(double deviation) {
  return [deviation](Random& random) { return deviation * std::normal_distribution<double>()(random); };
}
Noise heavy_tailed(double scale) {
  return [scale](Random& random) { return scale * std::student_t_distribution<double>(3)(random); };
}
// Some launches are slower by `factor`, with probability `chance`.
Noise two_states(double chance, double factor) {
  return [=](Random& random) { return std::bernoulli_distribution(chance)(random) ? std::log(factor) : 0; };
}

struct Scenario {
  size_t num_old, num_new, num_points;
  Noise of_launch;  // shared by all points of a launch
  Noise of_point;
};

// Simulates two sets of launches between which nothing has changed.
std::vector<LaunchPair> null_pair(const Scenario& s, Random& random) {
  std::vector<LaunchPair> pairs(s.num_points);
  for (size_t launch = 0; launch < s.num_old + s.num_new; ++launch) {
    const double common = s.of_launch(random);
    for (size_t i = 0; i < s.num_points; ++i) {
      const double time = 1e-3 * static_cast<double>(i + 1) * std::exp(common + s.of_point(random));
      (launch < s.num_old ? pairs[i].old_s : pairs[i].new_s).push_back(time);
    }
  }
  return pairs;
}

bool is_alarm(const Comparison& c) {
  return c.verdict == Judgement::slower || c.verdict == Judgement::faster;
}

// Returns the number of trials in which any point is called FASTER or SLOWER.
int num_alarms(const Scenario& scenario, int trials, double margin) {
  Random random(scenario.num_old * 1000 + scenario.num_points);
  int alarms = 0;
  for (int trial = 0; trial < trials; ++trial) {
    const auto comparisons = compare_launches(null_pair(scenario, random), margin);
    alarms += std::any_of(comparisons.begin(), comparisons.end(), is_alarm);
  }
  return alarms;
}

constexpr int kTrials = 1000;

TEST(Compare, FalseAlarmsAreAtMostFivePercent) {
  const Noise none = normal(0);
  const std::vector<std::pair<const char*, Scenario>> scenarios = {
      {"5 against 5, normal", {5, 5, 20, none, normal(0.03)}},
      {"5 against 5, launches share their luck", {5, 5, 20, normal(0.05), normal(0.01)}},
      {"5 against 5, heavy tails", {5, 5, 20, none, heavy_tailed(0.03)}},
      {"5 against 5, one of five launches is 10 % slower", {5, 5, 20, two_states(0.2, 1.1), normal(0.01)}},
      {"10 against 10", {10, 10, 50, none, heavy_tailed(0.03)}},
      {"3 against 3", {3, 3, 50, none, normal(0.05)}},
      {"5 against 1", {5, 1, 20, normal(0.02), normal(0.02)}},
      {"4 against 2", {4, 2, 5, none, normal(0.05)}},
      {"one point", {5, 5, 1, none, normal(0.03)}}};
  for (const auto& [name, scenario] : scenarios) {
    // The default margin would make alarms even rarer.
    const int alarms = num_alarms(scenario, kTrials, /*margin=*/0);
    RecordProperty(name, alarms);
    EXPECT_LE(alarms, 0.05 * kTrials) << name;
  }
}

TEST(Compare, FindsTheDifferenceItStatesWithItsPower) {
  for (const Scenario& s :
       {Scenario{5, 5, 20, normal(0), normal(0.03)}, Scenario{8, 8, 20, normal(0), normal(0.03)},
        Scenario{5, 1, 3, normal(0), normal(0.03)}}) {
    const double level = kFamilyLevel / static_cast<double>(s.num_points);
    const double factor = 1 + Power(s.num_old, s.num_new, level).slowdown(0.03, /*margin=*/0);
    Random random(7);
    int found = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      std::vector<LaunchPair> pairs = null_pair(s, random);
      for (double& time : pairs.front().new_s) time *= factor;
      found += compare_launches(pairs, 0).front().verdict == Judgement::slower;
    }
    EXPECT_NEAR(found, kPower * kTrials, 0.05 * kTrials) << s.num_old << " against " << s.num_new;
  }
}

// A row of the table in analysis/README.md. The columns of that table are spreads.
struct Promise {
  size_t num_points, num_old, num_new;

  double level() const { return kFamilyLevel / static_cast<double>(num_points); }
  double slowdown(double spread) const {
    return Power(num_old, num_new, level()).slowdown(spread, kDefaultMargin);
  }
};
constexpr std::array<Promise, 9> kPromises = {{{1, 3, 3},
                                               {1, 5, 5},
                                               {1, 10, 10},
                                               {20, 3, 3},
                                               {20, 5, 1},
                                               {20, 5, 5},
                                               {20, 10, 10},
                                               {50, 5, 5},
                                               {50, 10, 10}}};
constexpr std::array<double, 3> kSpreads = {0.01, 0.02, 0.05};

// Rounds up to two digits, because the table promises that the smallest detectable slow-down is no larger.
std::string at_most(double slowdown) {
  const double tenths = std::ceil(1000 * slowdown);
  return tenths < 100 ? fmt::format("{:.1f} %", tenths / 10)
                      : fmt::format("{:.0f} %", std::ceil(100 * slowdown));
}

TEST(Compare, PromisedPowerStandsInTheReadme) {
  std::string text = "| points | launches | test | 1 % | 2 % | 5 % |\n|---|---|---|---|---|---|\n";
  for (const Promise& promise : kPromises) {
    const bool ranks = basis_for(promise.num_old, promise.num_new, promise.level()) == Basis::ranks;
    text += fmt::format("| {} | {} against {} | {} |", promise.num_points, promise.num_old, promise.num_new,
                        ranks ? "ranks" : "spread");
    for (const double spread : kSpreads) text += " " + at_most(promise.slowdown(spread)) + " |";
    text += "\n";
  }
  expect_block("README.md", "power", text);
  std::string readme = read_text(SHARDMARK_SOURCE_DIR "/analysis/README.md");
  std::replace(readme.begin(), readme.end(), '\n', ' ');
  const std::string sentence = fmt::format(
      "With 20 points and launches that vary by 2 %, a slowdown of {} is called SLOWER with 80 % power (5 "
      "against 5 launches), or of {} (10 against 10)",
      at_most(Promise{20, 5, 5}.slowdown(0.02)), at_most(Promise{20, 10, 10}.slowdown(0.02)));
  EXPECT_NE(readme.find(sentence), std::string::npos) << sentence;
}

// If one point is slower by the promised amount, the fraction of comparisons that call it SLOWER is the
// promised power.
TEST(Compare, HasThePowerThatTheTablePromises) {
  for (const Promise& promise : kPromises)
    for (const double spread : kSpreads) {
      const Scenario scenario{promise.num_old, promise.num_new, promise.num_points, normal(0),
                              normal(spread)};
      const double factor = 1 + promise.slowdown(spread);
      const int trials = promise.num_points > 20 ? 400 : 1000;
      Random random(11);
      int found = 0;
      for (int trial = 0; trial < trials; ++trial) {
        std::vector<LaunchPair> pairs = null_pair(scenario, random);
        for (double& time : pairs.front().new_s) time *= factor;
        found += compare_launches(pairs, kDefaultMargin).front().verdict == Judgement::slower;
      }
      // The tolerance is three standard errors. Both these trials and the 4,000 trials behind the table
      // contribute to it.
      EXPECT_NEAR(found, kPower * trials,
                  3 * std::sqrt(kPower * (1 - kPower) * (trials + trials * trials / 4000.)))
          << promise.num_points << " points, " << promise.num_old << " against " << promise.num_new
          << ", spread " << spread;
    }
}

Comparison compared(std::vector<double> before, std::vector<double> after,
                    std::optional<Reference> reference = {}) {
  return compare_launches({{std::move(before), std::move(after), reference}}, 0.05).front();
}

TEST(Compare, SaysWhatItSees) {
  const std::vector<double> base = {1.00, 1.01, 0.99, 1.005, 0.995};
  EXPECT_EQ(compared(base, {1.2, 1.21, 1.19, 1.2, 1.22}).verdict, Judgement::slower);
  EXPECT_EQ(compared({1.2, 1.21, 1.19, 1.2, 1.22}, base).verdict, Judgement::faster);
  EXPECT_EQ(compared(base, {1.01, 1.0, 0.99, 1.003, 0.998}).verdict, Judgement::same);
  EXPECT_EQ(compared(base, {1.0, 1.2, 0.9, 1.1, 0.8}).verdict, Judgement::ambiguous);
  // The new launches are certainly slower, but by less than the margin.
  const Comparison small = compared(base, {1.02, 1.021, 1.022, 1.023, 1.025});
  EXPECT_LT(small.p, 0.05);
  EXPECT_EQ(small.verdict, Judgement::same);
  EXPECT_NEAR(small.difference, 0.022, 1e-9);
  EXPECT_EQ(small.basis, Basis::ranks);
}

// Launches have two speeds, both of which became slower. Most of the old launches were slow and most of the
// new ones fast, so that the medians change in the other direction.
TEST(Compare, TheVerdictIsThatOfTheShift) {
  std::vector<double> before, after;
  for (int i = 0; i < 15; ++i) {
    before.push_back((i < 7 ? 1.00 : 1.20) + 1e-6 * i);
    after.push_back((i < 8 ? 1.19 : 1.40) + 1e-6 * i);
  }
  const Comparison slower = compared(before, after), faster = compared(after, before);
  EXPECT_LT(slower.difference, 0);
  EXPECT_GT(slower.interval.low, 0);
  EXPECT_LT(slower.p, 0.05);
  EXPECT_EQ(slower.verdict, Judgement::slower);
  EXPECT_EQ(faster.verdict, Judgement::faster);
}

TEST(Compare, FewLaunchesDecideNothingUnlessBeyondTheSpread) {
  const Comparison none = compared({1.0, 1.0}, {9.0, 9.0});
  EXPECT_EQ(none.verdict, Judgement::ambiguous);
  EXPECT_EQ(none.basis, Basis::none);
  EXPECT_TRUE(std::isnan(none.p) && std::isnan(none.spread) && std::isnan(none.interval.low));
  const std::vector<double> base = {1.00, 1.01, 0.99, 1.005};
  EXPECT_EQ(compared(base, {1.3}).verdict, Judgement::slower);
  EXPECT_EQ(compared(base, {1.3}).basis, Basis::spread);
  EXPECT_EQ(compared(base, {1.02}).verdict, Judgement::ambiguous);
  EXPECT_EQ(compared(base, {1.0}).verdict,
            Judgement::ambiguous);  // one launch cannot show that nothing has changed
}

// A clock with a coarse resolution produces equal times. They do not prove that launches have no spread.
TEST(Compare, EqualTimesAreNoZeroSpread) {
  EXPECT_EQ(compared({1, 1, 1}, {1.01, 1.01, 1.01}).verdict, Judgement::same);
  EXPECT_EQ(compared({1, 1, 1, 1}, {1.03}).verdict, Judgement::ambiguous);
}

TEST(Compare, AReferenceDecidesAlone) {
  const double open = std::nan("");
  EXPECT_EQ(compared({1}, {1.06}, Reference{1, 0.9, 1.1}).verdict, Judgement::same);
  EXPECT_EQ(compared({1}, {1.2}, Reference{1, 0.9, 1.1}).verdict, Judgement::slower);
  EXPECT_EQ(compared({1}, {0.8}, Reference{1, 0.9, 1.1}).verdict, Judgement::faster);
  EXPECT_EQ(compared({1}, {0.1}, Reference{1, open, 1.1}).verdict, Judgement::same);
}

TEST(Compare, StatesTheSmallestSlowDown) {
  const LaunchPair five = {{1.00, 1.02, 0.98, 1.03, 0.97}, {1.01, 0.99, 1.02, 0.98, 1.00}};
  const double one = smallest_slowdowns({five}, kDefaultMargin).front();
  EXPECT_GT(one, 0.02);
  EXPECT_LT(one, 0.1);
  // With more points, the smallest difference that can be found is larger.
  EXPECT_GT(smallest_slowdowns(std::vector<LaunchPair>(20, five), kDefaultMargin).back(), one);
  EXPECT_TRUE(std::isnan(smallest_slowdowns({{{1, 2}, {1, 2}}}, kDefaultMargin).front()));
  // Without a margin, smaller differences are found.
  EXPECT_LT(smallest_slowdowns({five}, 0).front(), one);
}

}  // namespace
}  // namespace shardmark
