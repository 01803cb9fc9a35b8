// Tests bisection and halving on simulated machines, in which nodes of given speeds share the uplink of a
// switch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "doctor/bisection.h"
#include "doctor/halving.h"

namespace shardmark::doctor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kRails = 2;  // ranks per node

struct Machine {
  std::vector<double> slowness;  // for each node, the factor on its times
  double noise = 0;              // standard deviation of the logarithm of a time, for each rank and repeat
  // The number of pairs of nodes whose traffic the link between the halves carries at full speed.
  double uplink = INFINITY;
  unsigned seed = 1;
  int exchanges = 0;

  Members members() const {
    Members all;
    for (size_t node = 0; node < slowness.size(); ++node) {
      const int first = static_cast<int>(node) * kRails;
      all.push_back({"n" + std::to_string(node + 1), {first, first + 1}});
    }
    return all;
  }

  Exchange exchange() {
    return {kExchangeBytes,
            [this, random = std::mt19937(seed)](const Receivers& to, int64_t, int repeats) mutable {
              ++exchanges;
              std::normal_distribution<double> normal;
              const size_t half = to.size() / 2;
              int crossing = 0;
              std::vector<double> usual(to.size(), NAN);
              for (size_t rank = 0; rank < to.size(); ++rank) {
                if (to[rank] == kRests) continue;
                const auto other = static_cast<size_t>(to[rank]);
                crossing += rank < half && other >= half ? 1 : 0;
                EXPECT_NE(to[other], kRests) << "a receiver that sends nothing";
                usual[rank] = std::max(slowness[rank / kRails], slowness[other / kRails]);
              }
              const double shared = std::max(1.0, crossing / (uplink * kRails));
              for (size_t rank = 0; rank < to.size(); ++rank)
                if (to[rank] != kRests && (rank < half) != (static_cast<size_t>(to[rank]) < half))
                  usual[rank] = std::max(usual[rank], shared);
              Times times;
              for (double seconds : usual) {
                auto& own = times.emplace_back();
                for (int i = 0; i < repeats; ++i)
                  own.push_back(1e-3 * seconds * std::exp(noise * normal(random)));
              }
              return times;
            }};
  }
};

Machine machine_of(int nodes, double noise, unsigned seed) {
  Machine machine{std::vector<double>(static_cast<size_t>(nodes), 1), noise};
  machine.seed = seed;
  return machine;
}

Halving halved(Machine& machine) { return halve(machine.members(), machine.exchange(), /*crowded=*/false); }

int most_runs(int nodes) { return static_cast<int>(std::ceil(std::log2(nodes))) + 4; }

std::vector<int> named(const Halving& found) {
  std::vector<int> nodes;
  for (const SlowNode& one : found.nodes) nodes.push_back(one.member);
  return nodes;
}

// One node has 80 % of the bandwidth of the others, and the noise is 6 %.
TEST(DoctorHalving, ASlowNodeIsNamedInFewRuns) {
  int trials = 0, right = 0;
  for (int n : {4, 5, 6, 7, 8, 9, 13, 16, 31, 64, 100, 333, 1000})
    for (unsigned seed = 0; seed < (n > 200 ? 10U : 60U); ++seed) {
      Machine machine = machine_of(n, 0.06, seed);
      const int planted = static_cast<int>(seed * 7919) % n;
      machine.slowness[static_cast<size_t>(planted)] = 1 / 0.8;
      const Halving found = halved(machine);
      EXPECT_LE(found.runs, most_runs(n)) << n << " nodes, seed " << seed;
      EXPECT_EQ(found.runs, machine.exchanges);
      for (const SlowNode& one : found.nodes) EXPECT_EQ(one.member, planted) << n << " nodes, seed " << seed;
      ++trials;
      right += named(found) == std::vector<int>{planted} ? 1 : 0;
    }
  EXPECT_GE(right, trials * 95 / 100) << "of " << trials;
}

TEST(DoctorHalving, EveryNodeOfEveryNumberIsFoundWithoutNoise) {
  for (int n = 4; n <= 40; ++n)
    for (int planted = 0; planted < n; ++planted) {
      Machine machine = machine_of(n, 0, 1);
      machine.slowness[static_cast<size_t>(planted)] = 1.3;
      const Halving found = halved(machine);
      ASSERT_THAT(named(found), ElementsAre(planted)) << n << " nodes";
      EXPECT_NEAR(found.nodes.front().times_as_long, 1.3, 1e-9);
      EXPECT_TRUE(found.together.empty() && found.unresolved.empty());
      EXPECT_LE(found.runs, most_runs(n));
    }
}

TEST(DoctorHalving, NoiseAloneNamesNobody) {
  for (double noise : {0.02, 0.06, 0.1})
    for (int n : {4, 5, 8, 16, 50, 300})
      for (unsigned seed = 0; seed < (n > 200 ? 20U : 100U); ++seed) {
        Machine machine = machine_of(n, noise, seed);
        const Halving found = halved(machine);
        EXPECT_TRUE(report_halving(machine.members(), found, false).slow.empty())
            << n << " nodes, noise " << noise << ", seed " << seed << ": "
            << report_halving(machine.members(), found, false).slow.front();
      }
}

TEST(DoctorHalving, SeveralSlowNodesTakeNoMoreRuns) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    Machine machine = machine_of(64, 0.05, seed);
    machine.slowness[3] = 1.5;
    machine.slowness[40] = 2;
    machine.slowness[41] = 1.4;
    const Halving found = halved(machine);
    EXPECT_THAT(named(found), ::testing::UnorderedElementsAre(3, 40, 41)) << "seed " << seed;
    EXPECT_LE(found.runs, most_runs(64) + 1);
  }
}

TEST(DoctorHalving, WhatOnlyTheWholeLacksIsNoNode) {
  Machine machine = machine_of(16, 0.05, 3);
  machine.uplink = 4;  // half of the eight pairs
  const Halving found = halved(machine);
  EXPECT_TRUE(found.nodes.empty());
  ASSERT_EQ(found.together.size(), 1U);
  EXPECT_EQ(found.together.front().size(), 16U);
  EXPECT_THAT(report_halving(machine.members(), found, false).slow,
              ElementsAre(HasSubstr("n1 .. n16 are slow only together, and neither half is")));
  EXPECT_TRUE(report_halving(machine.members(), found, true).slow.empty())
      << "ranks of a node share by design";
}

TEST(DoctorHalving, SaysHowSureItIs) {
  Machine machine = machine_of(8, 0.03, 5);
  machine.slowness[2] = 1.5;
  const Halving found = halved(machine);
  const Verdicts report = report_halving(machine.members(), found, false);
  ASSERT_EQ(report.slow.size(), 1U);
  EXPECT_THAT(report.slow.front(), HasSubstr("n3 makes groups slow: with n"));
  EXPECT_THAT(report.slow.front(), HasSubstr("20 of 20 repeats beyond 1.15 x"));
  EXPECT_LT(found.nodes.front().interval.low, 1.52);
  EXPECT_GT(found.nodes.front().interval.high, 1.45);
  EXPECT_THAT(report.notes.back(), HasSubstr("named in at most 0.13 %"));
}

TEST(DoctorExchange, OfSlowLinksIsShorter) {
  EXPECT_EQ(exchange_bytes(50e9), kExchangeBytes);
  EXPECT_EQ(exchange_bytes(117e6), kExchangeBytes);  // 1 Gbit/s
  EXPECT_EQ(exchange_bytes(11e6), 1 << 20);
  EXPECT_EQ(exchange_bytes(1), 64 << 10);
}

CutReport bisected(Machine& machine, bool in_node = false) {
  const Members members = machine.members();
  std::vector<CutSpeed> speeds;
  const Exchange exchange = machine.exchange();
  for (const Cut& cut : cuts_of(members, {})) speeds.push_back(measure_cut(members, cut, exchange));
  return report_cuts(members, speeds, in_node, false);
}

TEST(DoctorBisection, IsTheSumOfItsLinksWhereNothingIsShared) {
  for (int n : {4, 7, 32, 64}) {
    Machine machine = machine_of(n, 0.02, 1);
    const CutReport report = bisected(machine);
    EXPECT_TRUE(report.slow.empty());
    const CutSpeed& speed = report.cuts.front();
    const double exact = n / 2 * kRails * static_cast<double>(kExchangeBytes) / 1e-3;
    EXPECT_NEAR(speed.alone / exact, 1, 0.04);
    EXPECT_NEAR(speed.together / exact, 1, 0.08);  // the slowest of many ranks
    EXPECT_LE(speed.num_alone, 16U);
    EXPECT_GT(machine.exchanges, static_cast<int>(speed.num_alone));
  }
  Machine odd = machine_of(7, 0, 1);
  EXPECT_THAT(bisected(odd).notes,
              ::testing::Contains(HasSubstr("7 are an odd number: n4, in the middle, rests")));
  Machine few = machine_of(3, 0, 1);
  EXPECT_THAT(bisected(few).notes, ElementsAre(HasSubstr("no bisection among fewer than four")));
}

TEST(DoctorBisection, FindsAnOversubscribedCut) {
  Machine machine = machine_of(16, 0.03, 2);
  machine.uplink = 4;  // half of the eight pairs
  const CutReport report = bisected(machine);
  ASSERT_EQ(report.slow.size(), 1U);
  EXPECT_THAT(report.slow.front(), HasSubstr("n1 .. n8 | n9 .. n16"));
  EXPECT_THAT(report.slow.front(), HasSubstr("(oversubscribed 2."));
  EXPECT_LT(report.cuts.front().share_interval.low, report.cuts.front().share_interval.high);
  EXPECT_NEAR(report.cuts.front().share, 0.5, 0.05);
  EXPECT_TRUE(bisected(machine, /*in_node=*/true).slow.empty());
}

TEST(DoctorBisection, ASlowNodeIsNoOversubscription) {
  Machine machine = machine_of(16, 0.03, 2);
  machine.slowness[9] = 4;
  const CutReport report = bisected(machine);
  EXPECT_TRUE(report.slow.empty());  // the test of pairs reports the node instead
  EXPECT_THAT(report.notes, ::testing::Contains(HasSubstr("because n2 and n10 are slow alone, too")));
}

}  // namespace
}  // namespace shardmark::doctor
