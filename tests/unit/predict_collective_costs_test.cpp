// Tests the fit of latency and bandwidth to times that were computed from known links. Exact times give back
// the links, the intervals for noisy times contain them as often as they claim, and times that cannot
// separate the two are refused. Further tests cover predictions for other sizes, ranks, links and operations.
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/predict/collective_settings.h"
#include "analysis_fixture.h"

namespace shardmark {
namespace {

using specs::Network;
using specs::Span;
using Random = std::mt19937_64;

constexpr Network kTruth = {{2e-6, 1 / 40e9}, {12e-6, 1 / 2e9}};

// Returns the times for 1 KiB to 16 MiB in factors of 4. `noise` is the relative standard deviation of a
// time, and the interval of the time shows it.
std::vector<TimedCollective> times_of(specs::Collective operation, const std::vector<Span>& spans,
                                      double noise, Random& random) {
  std::normal_distribution<double> normal;
  std::vector<TimedCollective> times;
  for (const Span span : spans)
    for (double bytes = 1024; bytes <= 16 << 20; bytes *= 4) {
      const double s = specs::collective_s(operation, bytes, span, kTruth) *
                       (noise > 0 ? std::exp(noise * normal(random)) : 1);
      times.push_back({operation, bytes, span, {s, s * (1 - 1.96 * noise), s * (1 + 1.96 * noise)}});
    }
  return times;
}

std::vector<TimedCollective> exact_times(specs::Collective operation, const std::vector<Span>& spans) {
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
  for (const specs::Collective operation :
       {specs::Collective::all_reduce, specs::Collective::reduce_scatter, specs::Collective::all_gather,
        specs::Collective::broadcast, specs::Collective::send_recv}) {
    const CollectiveCosts costs(joined(exact_times(operation, kInside), exact_times(operation, kAcross)));
    ASSERT_EQ(costs.fits().size(), 2);
    for (const AlphaBeta& fit : costs.fits()) {
      const specs::LinkCost& truth = fit.across_nodes ? kTruth.across : kTruth.node;
      ASSERT_EQ(fit.refused, "");
      EXPECT_NEAR(fit.alpha_s.value / truth.alpha_s, 1, 1e-6) << specs::collective(operation).name;
      EXPECT_NEAR(fit.beta_s_per_byte.value / truth.beta_s_per_byte, 1, 1e-6)
          << specs::collective(operation).name;
      EXPECT_LT(fit.deviation, 1e-6);
    }
    for (const Span span : {Span{64, 1}, Span{1024, 128}})
      EXPECT_NEAR(costs.time_s(operation, 5e5, span) / specs::collective_s(operation, 5e5, span, kTruth), 1,
                  1e-6)
          << specs::collective(operation).name;
  }
}

// In 1,000 noisy studies, the 95 % intervals of alpha and beta contain the true values in 92 to 98 % of the
// cases.
TEST(CollectiveCosts, IntervalsCoverTheTruth) {
  Random random(7);
  for (const specs::Collective operation : {specs::Collective::all_reduce, specs::Collective::all_gather})
    for (const double noise : {0.02, 0.1}) {
      int covered[2][2] = {};
      for (int trial = 0; trial < 1000; ++trial) {
        const CollectiveCosts costs(joined(times_of(operation, {{2, 1}}, noise, random),
                                           times_of(operation, kAcross, noise, random)));
        for (const AlphaBeta& fit : costs.fits()) {
          const specs::LinkCost& truth = fit.across_nodes ? kTruth.across : kTruth.node;
          const auto holds = [](const Estimate& e, double value) {
            return e.low <= value && value <= e.high;
          };
          covered[fit.across_nodes][0] += holds(fit.alpha_s, truth.alpha_s);
          covered[fit.across_nodes][1] += holds(fit.beta_s_per_byte, truth.beta_s_per_byte);
        }
      }
      for (const auto& level : covered)
        for (const int count : level) {
          EXPECT_GE(count, 920) << specs::collective(operation).name << " noise " << noise;
          EXPECT_LE(count, 980) << specs::collective(operation).name << " noise " << noise;
        }
    }
}

// From 64 KiB on, a second protocol takes twice as long.
std::vector<TimedCollective> times_of_two_protocols() {
  auto times = exact_times(specs::Collective::all_gather, {{2, 1}, {4, 1}});
  for (TimedCollective& time : times)
    if (time.bytes >= 65536) time.time_s = {2 * time.time_s.value};
  return times;
}

TEST(CollectiveCosts, AMeasuredPointHasItsMeasuredTime) {
  const auto times = times_of_two_protocols();
  const CollectiveCosts costs(times);
  EXPECT_GT(costs.fits().front().deviation, 0.05);
  for (const TimedCollective& time : times)
    EXPECT_NEAR(costs.time_s(specs::Collective::all_gather, time.bytes, time.span) / time.time_s.value, 1,
                1e-9)
        << time.bytes;
}

TEST(CollectiveCosts, BetweenSizesTheCurveIsFollowedAndBeyondThemTheModel) {
  const CollectiveCosts costs(times_of_two_protocols());
  const auto over_law = [&](double bytes, Span span) {
    return costs.time_s(specs::Collective::all_gather, bytes, span) /
           specs::collective_s(specs::Collective::all_gather, bytes, span, kTruth);
  };
  EXPECT_NEAR(over_law(8192, {2, 1}), 1, 0.05);  // between 4 and 16 KiB, where both use the first protocol
  EXPECT_NEAR(over_law(1 << 19, {2, 1}), 2, 0.1);
  EXPECT_GT(over_law(32768, {2, 1}), 1.2);  // between two protocols
  EXPECT_LT(over_law(32768, {2, 1}), 1.8);
  EXPECT_NEAR(over_law(1 << 30, {2, 1}), 2, 0.1);
  EXPECT_NEAR(over_law(1 << 28, {64, 1}), 2, 0.1);  // as in the nearest measured span, which has 4 ranks
}

TEST(CollectiveCosts, SayWhatATimeComesFrom) {
  const CollectiveCosts costs(exact_times(specs::Collective::all_gather, {{2, 1}, {8, 1}}));
  const auto here = costs.basis(specs::Collective::all_gather, 5000, {2, 1});
  ASSERT_TRUE(here);
  EXPECT_EQ(here->operation, specs::Collective::all_gather);
  EXPECT_TRUE(here->within_sizes);
  const auto borrowed = costs.basis(specs::Collective::reduce_scatter, 1e9, {16, 1});
  ASSERT_TRUE(borrowed);
  EXPECT_EQ(borrowed->operation, specs::Collective::all_gather);
  EXPECT_EQ(borrowed->span, (Span{8, 1}));
  EXPECT_FALSE(borrowed->within_sizes);
  // Nothing was measured across nodes.
  EXPECT_FALSE(costs.basis(specs::Collective::all_gather, 5000, {4, 2}));
}

TEST(CollectiveCosts, AnOperationThatWasNotMeasuredTakesTheLinksOfTheMostAlike) {
  const CollectiveCosts costs(joined(exact_times(specs::Collective::all_gather, kInside),
                                     exact_times(specs::Collective::broadcast, kInside)));
  for (const specs::Collective operation : {specs::Collective::all_reduce, specs::Collective::reduce_scatter,
                                            specs::Collective::reduce, specs::Collective::scatter})
    EXPECT_NEAR(costs.time_s(operation, 1e6, {8, 1}) / specs::collective_s(operation, 1e6, {8, 1}, kTruth), 1,
                1e-6)
        << specs::collective(operation).name;
  EXPECT_TRUE(std::isnan(costs.time_s(specs::Collective::all_gather, 1e6, {16, 2})));
  EXPECT_TRUE(std::isnan(CollectiveCosts({}).time_s(specs::Collective::all_gather, 1e6, {2, 1})));
  EXPECT_EQ(costs.time_s(specs::Collective::all_gather, 1e6, {1, 1}), 0);
}

TEST(CollectiveCosts, RefuseWhatCannotTellLatencyFromBandwidth) {
  const auto refused = [](const std::vector<TimedCollective>& times) {
    return CollectiveCosts(times).fits().front().refused;
  };
  auto times = exact_times(specs::Collective::all_gather, {{2, 1}});
  times.resize(3);
  EXPECT_EQ(refused(times), "3 times; a fit needs 4");
  std::vector<TimedCollective> one_size;
  for (const int64_t ranks : {2, 4, 8, 16})
    one_size.push_back(
        {specs::Collective::all_gather, 4096, {ranks, 1}, {1e-5 * static_cast<double>(ranks)}});
  EXPECT_EQ(refused(one_size), "one size only: 4.00 KiB");
  times = exact_times(specs::Collective::all_gather, {{2, 1}});
  times.resize(4);
  times[3].time_s.value = Measures::kNone;  // a broken time is ignored
  EXPECT_EQ(refused(times), "3 times; a fit needs 4");
}

TEST(CollectiveCosts, TimesThatFallWithTheSizeHaveNoNegativeCost) {
  std::vector<TimedCollective> times;
  for (const double bytes : {1e3, 1e4, 1e5, 1e6})
    times.push_back({specs::Collective::all_gather, bytes, {2, 1}, {1e-5 / std::log(bytes)}});
  const CollectiveCosts costs(times);
  const AlphaBeta& fit = costs.fits().front();
  EXPECT_EQ(fit.beta_s_per_byte.value, 0);
  EXPECT_GT(fit.alpha_s.value, 0);
  EXPECT_GE(fit.alpha_s.low, 0);
}

TEST(CollectiveCosts, OverAnotherNetworkOnlyTheNodesStayAsMeasured) {
  const CollectiveCosts costs(joined(exact_times(specs::Collective::all_gather, kInside),
                                     exact_times(specs::Collective::all_gather, kAcross)));
  const specs::Link link{"other", 1e-6, 100e9, ""};
  const Network other = {kTruth.node, {link.latency_s, 1 / link.bytes_per_s}};
  for (const Span span : {Span{16, 2}, Span{256, 32}, Span{8, 1}})
    EXPECT_NEAR(costs.over(link).time_s(specs::Collective::all_gather, 1e7, span) /
                    specs::collective_s(specs::Collective::all_gather, 1e7, span, other),
                1, 1e-6);
  const CollectiveCosts links = CollectiveCosts({}).over(link);
  EXPECT_NEAR(links.time_s(specs::Collective::all_reduce, 1e7, {4, 4}),
              specs::collective_s(specs::Collective::all_reduce, 1e7, {4, 4}, other), 1e-12);
  // The links within a node are unknown.
  EXPECT_TRUE(std::isnan(links.time_s(specs::Collective::all_reduce, 1e7, {8, 2})));
  EXPECT_FALSE(std::isnan(links.within(link).time_s(specs::Collective::all_reduce, 1e7, {8, 2})));
}

TEST(CollectiveCosts, DrawnLinksScatterAsTheirIntervals) {
  Random random(3);
  const CollectiveCosts costs(times_of(specs::Collective::all_gather, {{2, 1}}, 0.1, random));
  const AlphaBeta& fit = costs.fits().front();
  int alphas = 0, betas = 0;
  for (int i = 0; i < 1000; ++i) {
    const AlphaBeta drawn = costs.drawn(random).fits().front();
    alphas += fit.alpha_s.low <= drawn.alpha_s.value && drawn.alpha_s.value <= fit.alpha_s.high;
    betas += fit.beta_s_per_byte.low <= drawn.beta_s_per_byte.value &&
             drawn.beta_s_per_byte.value <= fit.beta_s_per_byte.high;
  }
  EXPECT_NEAR(alphas, 950, 25);
  EXPECT_NEAR(betas, 950, 25);
}

TEST(CollectiveCosts, UseThePointsThatMayBeUsed) {
  std::vector<Record> records = {collective_record("all_gather", 2, 4096, true, 3e-5),
                                 collective_record("all_gather", 2, 4096, false, 2e-5),
                                 collective_record("all_gather", 2, 8192, true, 4e-5),
                                 collective_record("all_gather", 2, 16384, true, 5e-5),
                                 collective_record("all_gather", 1, 4096, true, 1e-6),
                                 training_record("ddp", 2, 4, 0.1)};
  records[2].measures.oversubscribed = true;
  records[3].point.collective.dtype = "float16";
  for (Record& record : records) record.point.collective.reduction = "none";
  const std::vector<StudyData> studies = {study_of(records)};
  const auto points = merge_repeats(studies);
  const auto times = timed_collectives(points, points.front().machine, "mpi");
  ASSERT_EQ(times.size(), 1);
  EXPECT_EQ(times.front().time_s.value,
            3e-5);  // in place is preferred if both were measured at equally many sizes
  EXPECT_EQ(times.front().span, (Span{2, 1}));
}

// Held-out times of a noisy formula are predicted within the noise. A time is not predicted if only its size
// uses another protocol.
TEST(CollectiveCosts, HeldOutSizesAreToldByTheOthers) {
  auto times = exact_times(specs::Collective::all_gather, {{2, 1}});
  const auto exact = held_out_collectives(times);
  ASSERT_EQ(exact.size(), 1);
  EXPECT_EQ(exact.front().errors.size(), times.size() - 2);
  for (const double error : exact.front().errors) EXPECT_NEAR(error, 0, 1e-6);
  times[3].time_s.value *= 3;
  const auto odd = held_out_collectives(times);
  EXPECT_LT(odd.front().errors[2], -0.4);
}

}  // namespace
}  // namespace shardmark
