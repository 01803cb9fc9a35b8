// Latency and bandwidth from times that known links made: recovered exactly, covered by their intervals as
// often as those claim, and refused where the times cannot tell; and what is made of them for other sizes,
// ranks, links and operations.
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/predict/collective_costs.h"
#include "analysis_fixture.h"
#include "base/stats.h"

namespace shardmark {
namespace {

using laws::Network;
using laws::Span;
using Random = std::mt19937_64;

constexpr Network kTruth = {{2e-6, 1 / 40e9}, {12e-6, 1 / 2e9}};

// 1 KiB to 16 MiB by 4; noise: relative standard deviation of a time, which its interval shows.
std::vector<TimedCollective> times_of(const std::string& operation, const std::vector<Span>& spans,
                                      double noise, Random& random) {
  std::normal_distribution<double> normal;
  std::vector<TimedCollective> times;
  for (const Span span : spans)
    for (double bytes = 1024; bytes <= 16 << 20; bytes *= 4) {
      const double s = laws::collective_s(operation, bytes, span, kTruth) *
                       (noise > 0 ? std::exp(noise * normal(random)) : 1);
      times.push_back({operation, bytes, span, {s, s * (1 - 1.96 * noise), s * (1 + 1.96 * noise)}});
    }
  return times;
}

std::vector<TimedCollective> exact_times(const std::string& operation, const std::vector<Span>& spans) {
  Random random(1);
  return times_of(operation, spans, 0, random);
}

std::vector<TimedCollective> joined(std::vector<TimedCollective> a, const std::vector<TimedCollective>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const std::vector<Span> kInside = {{2, 1}, {4, 1}, {8, 1}};
const std::vector<Span> kAcross = {{16, 2}, {32, 4}};

TEST(CollectiveCosts, RecoverTheLinksThatMadeTheTimes) {
  for (const char* operation : {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "send_recv"}) {
    const CollectiveCosts costs(joined(exact_times(operation, kInside), exact_times(operation, kAcross)));
    ASSERT_EQ(costs.fits().size(), 2);
    for (const AlphaBeta& fit : costs.fits()) {
      const laws::LinkCost& truth = fit.across_nodes ? kTruth.across : kTruth.node;
      ASSERT_EQ(fit.refused, "");
      EXPECT_NEAR(fit.alpha_s.value / truth.alpha_s, 1, 1e-6) << operation;
      EXPECT_NEAR(fit.beta_s_per_byte.value / truth.beta_s_per_byte, 1, 1e-6) << operation;
      EXPECT_LT(fit.deviation, 1e-6);
    }
    for (const Span span : {Span{64, 1}, Span{1024, 128}})
      EXPECT_NEAR(costs.time_s(operation, 5e5, span) / laws::collective_s(operation, 5e5, span, kTruth), 1,
                  1e-6)
          << operation;
  }
}

// Of 1,000 noisy studies the 95 % interval of alpha, and of beta, must hold the true value in 92 to 98 %.
TEST(CollectiveCosts, IntervalsCoverTheTruth) {
  Random random(7);
  for (const char* operation : {"all_reduce", "all_gather"})
    for (const double noise : {0.02, 0.1}) {
      int covered[2][2] = {};
      for (int trial = 0; trial < 1000; ++trial) {
        const CollectiveCosts costs(joined(times_of(operation, {{2, 1}}, noise, random),
                                           times_of(operation, kAcross, noise, random)));
        for (const AlphaBeta& fit : costs.fits()) {
          const laws::LinkCost& truth = fit.across_nodes ? kTruth.across : kTruth.node;
          const auto holds = [](const Estimate& e, double value) {
            return e.low <= value && value <= e.high;
          };
          covered[fit.across_nodes][0] += holds(fit.alpha_s, truth.alpha_s);
          covered[fit.across_nodes][1] += holds(fit.beta_s_per_byte, truth.beta_s_per_byte);
        }
      }
      for (const auto& level : covered)
        for (const int count : level) {
          EXPECT_GE(count, 920) << operation << " noise " << noise;
          EXPECT_LE(count, 980) << operation << " noise " << noise;
        }
    }
}

}  // namespace
}  // namespace shardmark
