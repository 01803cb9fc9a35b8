// Tests the schedule in which all pairs meet, the verdicts on simulated speeds, and the maps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "doctor/pair_test.h"
#include "doctor/pairs.h"

namespace shardmark::doctor {
namespace {

using ::testing::HasSubstr;

TEST(DoctorTournament, EachPairMeetsOnce) {
  for (int n = 0; n <= 33; ++n) {
    std::set<std::pair<int, int>> met;
    for (int round = 0; round < num_rounds(n); ++round) {
      int resting = 0;
      for (int member = 0; member < n; ++member) {
        const int other = partner(n, round, member);
        if (other < 0) {
          ++resting;
          continue;
        }
        ASSERT_NE(other, member);
        ASSERT_LT(other, n);
        ASSERT_EQ(partner(n, round, other), member) << n << " members, round " << round;
        if (member > other) continue;
        EXPECT_TRUE(met.emplace(member, other).second) << member << " and " << other << " twice";
      }
      EXPECT_EQ(resting, n % 2);
    }
    EXPECT_EQ(met.size(), static_cast<size_t>(n * (n - 1) / 2));
  }
}

double takes(const Meetings& plan, double setup_s, double exchange_s) {
  return plan.passes * static_cast<double>(plan.rounds.size()) * (setup_s + (plan.repeats + 1) * exchange_s);
}

TEST(DoctorTournament, FitsTheBudget) {
  const Meetings quick = plan_meetings(7, 1e-3, 1e-3, 25);
  EXPECT_EQ(quick.rounds.size(), 7U);
  EXPECT_EQ(quick.passes, 10);
  EXPECT_EQ(quick.repeats, 8);
  for (int rounds : {1, 7, 999, 7999})
    for (double exchange_s : {1e-4, 1e-2, 0.2}) {
      const Meetings plan = plan_meetings(rounds, 2e-3, exchange_s, 25);
      EXPECT_LE(takes(plan, 2e-3, exchange_s), 25) << rounds << " rounds of " << exchange_s;
      EXPECT_EQ(std::set<int>(plan.rounds.begin(), plan.rounds.end()).size(), plan.rounds.size());
      EXPECT_LT(plan.rounds.back(), rounds);
    }
  const Meetings sampled = plan_meetings(999, 0, 0.1, 25);
  EXPECT_EQ(sampled.rounds.size(), 125U);  // rounds of 0.2 s
  EXPECT_GT(sampled.rounds.back(), 980);   // spread over all rounds
  EXPECT_EQ(plan_meetings(999, 60, 60, 25).rounds.size(), 1U);
}

// Simulates pairs at about 25 GB/s. A pair is as slow as its slower member.
PairSpeeds simulated(int n, unsigned seed, double noise, const std::vector<double>& speed_of = {}) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  PairSpeeds speeds(n);
  for (int a = 0; a < n; ++a)
    for (int b = a + 1; b < n; ++b) {
      double share = 1;
      if (!speed_of.empty())
        share = std::min(speed_of[static_cast<size_t>(a)], speed_of[static_cast<size_t>(b)]);
      speeds.set(a, b, 25e9 * share * std::exp(noise * normal(random)));
    }
  return speeds;
}

TEST(DoctorPairs, NoiseAloneNamesNobody) {
  for (int n : {2, 3, 4, 8, 16, 48, 100})
    for (unsigned seed = 0; seed < 200; ++seed) {
      const auto speeds = simulated(n, seed, 0.06);
      EXPECT_TRUE(slow_members(speeds).empty()) << n << " members, seed " << seed;
      EXPECT_TRUE(slow_pairs(speeds, {}, 5).empty()) << n << " members, seed " << seed;
    }
}

TEST(DoctorPairs, ASlowNodeIsFound) {
  for (int n : {3, 4, 8, 16, 48, 100})
    for (unsigned seed = 0; seed < 100; ++seed) {
      std::vector<double> speed_of(static_cast<size_t>(n), 1);
      const int planted = static_cast<int>(seed) % n;
      const double share = n < 8 ? 0.5 : 0.6;  // fewer pairs detect only larger differences
      speed_of[static_cast<size_t>(planted)] = share;
      const auto speeds = simulated(n, seed, 0.05, speed_of);
      const auto slow = slow_members(speeds);
      ASSERT_EQ(slow.size(), 1U) << n << " members, seed " << seed;
      EXPECT_EQ(slow.front().member, planted);
      EXPECT_NEAR(slow.front().share, share, 0.15);
      EXPECT_TRUE(slow_pairs(speeds, slow, 5).empty()) << "its pairs are explained";
    }
}

TEST(DoctorPairs, SeveralSlowNodesAreFoundUnlessTheyAreTheHalf) {
  std::vector<double> speed_of(16, 1);
  speed_of[2] = 0.3;
  speed_of[11] = 0.6;
  const auto slow = slow_members(simulated(16, 7, 0.05, speed_of));
  ASSERT_EQ(slow.size(), 2U);
  EXPECT_EQ(slow[0].member, 2);
  EXPECT_EQ(slow[1].member, 11);
  EXPECT_TRUE(slow_members(simulated(4, 7, 0.05, {1, 1, 0.5, 0.5})).empty());
}

TEST(DoctorPairs, ASlowLinkIsNotANode) {
  auto speeds = simulated(8, 3, 0.03);
  speeds.set(2, 5, 5e9);
  speeds.set(1, 6, 9e9);
  EXPECT_TRUE(slow_members(speeds).empty());
  const auto slow = slow_pairs(speeds, {}, 5);
  ASSERT_EQ(slow.size(), 2U);
  EXPECT_EQ(slow[0].a, 2);
  EXPECT_EQ(slow[0].b, 5);
  EXPECT_NEAR(slow[0].share, 0.2, 0.02);
  EXPECT_EQ(slow_pairs(speeds, {}, 1).size(), 1U);
}

TEST(DoctorPairs, ASampleOfRoundsIsEnough) {
  constexpr int kMembers = 200;
  std::vector<double> speed_of(kMembers, 1);
  speed_of[77] = 0.5;
  const auto all = simulated(kMembers, 1, 0.05, speed_of);
  PairSpeeds sample(kMembers);
  for (int round : {3, 50, 90, 160, 190})
    for (int a = 0; a < kMembers; ++a)
      if (const int b = partner(kMembers, round, a); b >= 0) sample.keep_best(a, b, all.at(a, b));
  EXPECT_EQ(sample.measured().size(), 500U);
  const auto slow = slow_members(sample);
  ASSERT_EQ(slow.size(), 1U);
  EXPECT_EQ(slow.front().member, 77);
}

TEST(DoctorPairs, TheBetterPassCounts) {
  PairSpeeds speeds(2);
  speeds.keep_best(0, 1, 3);
  speeds.keep_best(1, 0, 5);
  speeds.keep_best(0, 1, 4);
  EXPECT_EQ(speeds.at(0, 1), 5);
}

Map map_of(PairSpeeds speeds) {
  std::vector<std::string> names;
  for (int i = 0; i < speeds.size(); ++i) names.push_back("node" + std::to_string(i + 1));
  return {"Bandwidth", "GB/s", std::move(speeds), names, 1e-9};
}

TEST(DoctorMap, IsLetters) {
  PairSpeeds speeds(4);
  for (int a = 0; a < 4; ++a)
    for (int b = a + 1; b < 4; ++b) speeds.set(a, b, 20e9);
  speeds.set(0, 3, 12.9e9);
  speeds.set(1, 2, NAN);
  EXPECT_EQ(
      to_text(map_of(speeds)),
      "Bandwidth: median 20 GB/s\n\n"
      "           0123\n"
      "  0 node1  \\..6\n"
      "  1 node2  .\\ .\n"
      "  2 node3  . \\.\n"
      "  3 node4  6..\\\n\n"
      "  . 95 % of the median or more; 9 = 90 %, 8 = 80 % ... 0 = less than 10 %; blank: not measured\n");
}

TEST(DoctorMap, GroupsManyAndKeepsTheSlowest) {
  auto speeds = simulated(100, 1, 0.001);
  speeds.set(10, 70, 25e9 * 0.25);
  const std::string text = to_text(map_of(speeds));
  EXPECT_THAT(text, HasSubstr("the slowest pair of 3 x 3 members"));
  std::istringstream lines(text);
  size_t widest = 0, count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    widest = std::max(widest, line.size());
    if (line.find("node10 .. node12") != line.npos) {
      EXPECT_THAT(line, HasSubstr("2")) << line;
    }
  }
  EXPECT_LT(widest, 100U);
  EXPECT_LT(count, 45U);
}

TEST(DoctorMap, ALatencyIsShownAsATime) {
  PairSpeeds speeds(2);
  speeds.set(0, 1, 1 / 2.5e-6);
  EXPECT_THAT(to_text(Map{"Latency", "us", speeds, {"a", "b"}, 1e6, true}), HasSubstr("median 2.5 us"));
}

TEST(DoctorMap, IsAPageOfItsOwn) {
  const auto page = to_html({map_of(simulated(6, 1, 0.05))}, {"node<3> & \"more\""}, "6 nodes");
  EXPECT_THAT(page, HasSubstr("node&lt;3&gt; &amp; &quot;more&quot;"));
  EXPECT_THAT(page, HasSubstr("<title>node2 - node5: "));
  for (const char* alien : {"<script", "http://", "https://", "src=", "nan"})
    EXPECT_EQ(page.find(alien), page.npos) << alien;
  size_t cells = 0;
  for (size_t at = page.find("<rect"); at != page.npos; at = page.find("<rect", at + 1)) ++cells;
  EXPECT_EQ(cells, 30U);
  EXPECT_LT(to_html({map_of(simulated(1000, 1, 0.05))}, {}, "").size(), 5U << 20);
}

}  // namespace
}  // namespace shardmark::doctor
