// Tests how the times between ranks lead to verdicts about nodes, ranks and links, on a simulated cluster in
// which one part is slow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "doctor/pair_test.h"

namespace shardmark::doctor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kNodes = 6, kLocal = 3, kRanks = kNodes * kLocal;
constexpr int64_t kBytes = 4 << 20;

using SpeedOf = std::function<double(int a, int b)>;  // the share of the usual speed between two ranks

// Simulates what the ranks measure in a phase. `group` and `member` give the position of a rank. All rounds
// are run, and times vary by 3 %.
Phase simulated(int size, const std::function<int(int)>& group, const std::function<int(int)>& member,
                const std::function<int(int group, int member)>& rank_of, const SpeedOf& share) {
  Phase phase;
  phase.num_rounds = num_rounds(size);
  phase.plan = plan_meetings(phase.num_rounds, 1e-4, 1e-4, 25);
  std::mt19937 random(5);
  std::normal_distribution<double> noise(0, 0.03);
  std::vector<Witness> world;
  for (int rank = 0; rank < kRanks; ++rank) {
    Witness one{group(rank), member(rank), size, {}};
    for (int round : phase.plan.rounds) {
      const int other = partner(size, round, member(rank));
      if (other < 0) {
        one.meetings.push_back({NAN, NAN});
        continue;
      }
      const double slower = std::exp(noise(random)) / share(rank, rank_of(group(rank), other));
      one.meetings.push_back({3e-6 * slower, static_cast<double>(kBytes) / 20e9 * slower});
    }
    world.push_back(one);
  }
  phase.groups = groups_from(world, phase.plan.rounds, kBytes);
  return phase;
}

PairReport report_of(const SpeedOf& share, bool crowded = false) {
  PairTest test;
  test.crowded = crowded;
  test.transport = "mpi";
  test.large_bytes = kBytes;
  test.seconds = 3.2;
  const auto node = [](int rank) { return rank / kLocal; };
  const auto local = [](int rank) { return rank % kLocal; };
  test.in_nodes = simulated(
      kLocal, node, local, [](int n, int l) { return n * kLocal + l; }, share);
  test.across = simulated(
      kNodes, local, node, [](int l, int n) { return n * kLocal + l; }, share);
  std::vector<std::string> hosts;
  for (int rank = 0; rank < kRanks; ++rank) hosts.push_back("node" + std::to_string(node(rank) + 1));
  return report_pairs(test, hosts);
}

bool across(int a, int b) { return a / kLocal != b / kLocal; }

TEST(DoctorPairReport, NobodyIsSlow) {
  const auto report = report_of([](int, int) { return 1; });
  EXPECT_TRUE(report.slow.empty());
  EXPECT_THAT(report.notes,
              ElementsAre(HasSubstr("no node, rank or link is slow: the slowest pair reaches 9")));
  ASSERT_EQ(report.maps.size(), 4U);
  EXPECT_EQ(report.maps[0].title, "Bandwidth between nodes");
  EXPECT_NEAR(report.maps[0].speeds.at(2, 4), kLocal * 20e9, 8e9);  // the sum of three rails
  EXPECT_NEAR(1 / report.maps[1].speeds.at(2, 4), 3e-6, 0.5e-6);
  EXPECT_NEAR(report.maps[2].speeds.at(0, 2), 20e9, 3e9);
  EXPECT_THAT(report.head, HasSubstr("4.00 MiB"));
}

TEST(DoctorPairReport, ANodeIsSlow) {
  const auto report =
      report_of([](int a, int b) { return across(a, b) && (a / kLocal == 3 || b / kLocal == 3) ? 0.5 : 1; });
  ASSERT_THAT(report.slow, ElementsAre(HasSubstr("node4 is slow with all other nodes: ")));
  EXPECT_THAT(report.slow[0], HasSubstr("look at cable, port or switch of node4"));
  const auto text = to_text(report.maps[0]);
  EXPECT_THAT(text, HasSubstr("3 node4  "));
}

// What a rank sends arrives damaged at all of its partners.
TEST(DoctorPairReport, DamagedMessagesNameTheirSender) {
  std::vector<Witness> world;
  for (int rank = 0; rank < kRanks; ++rank) {
    Witness one{rank / kLocal, rank % kLocal, kLocal, {}};
    for (int round = 0; round < num_rounds(kLocal); ++round) {
      const int other = partner(kLocal, round, one.member);
      const bool from_damaged = one.group == 2 && other == 1;
      one.meetings.push_back(other < 0 ? Meeting{NAN, NAN} : Meeting{1e-6, 1e-3, from_damaged ? 7.0 : 0.0});
    }
    world.push_back(one);
  }
  PairTest test;
  test.in_nodes.num_rounds = num_rounds(kLocal);
  test.in_nodes.plan = plan_meetings(num_rounds(kLocal), 1e-4, 1e-4, 25);
  test.in_nodes.groups = groups_from(world, {0, 1, 2}, kBytes);
  std::vector<std::string> hosts;
  for (int rank = 0; rank < kRanks; ++rank) hosts.push_back("node" + std::to_string(rank / kLocal + 1));
  EXPECT_THAT(
      report_pairs(test, hosts).wrong,
      ElementsAre("14 elements of what rank 7 sent to 2 ranks arrived with another value; look at device, "
                  "memory and network adapter of rank 7 (node3)"));
}

// Only small messages are slow: a third of the usual speed, while the bandwidth is normal.
TEST(DoctorPairReport, ALateNodeIsTold) {
  PairTest test;
  test.across.num_rounds = 7;
  test.across.plan = plan_meetings(7, 1e-4, 1e-4, 25);
  test.in_nodes.groups.resize(8);
  GroupSpeeds rail{{0, 1, 2, 3, 4, 5, 6, 7}, PairSpeeds(8), PairSpeeds(8)};
  for (int a = 0; a < 8; ++a) {
    test.in_nodes.groups[static_cast<size_t>(a)] = {{a}, PairSpeeds(1), PairSpeeds(1)};
    for (int b = a + 1; b < 8; ++b) {
      rail.bytes.set(a, b, 20e9);
      rail.messages.set(a, b, a == 2 || b == 2 ? 1e5 : 3e5);
    }
  }
  test.across.groups = {rail};
  const auto report = report_pairs(test, {"a", "b", "c", "d", "e", "f", "g", "h"});
  EXPECT_THAT(report.slow,
              ElementsAre(HasSubstr("c answers all other nodes late: 3.0 x the latency of other pairs")));
}

// Node d has one rank where nodes a to c have two. It moves half of the bytes at full speed.
TEST(DoctorPairReport, ANodeOfFewerRanksIsNotSlow) {
  PairTest test;
  test.across.num_rounds = 3;
  test.across.plan = plan_meetings(3, 1e-4, 1e-4, 25);
  test.in_nodes.groups = {{{0, 1}, PairSpeeds(2), PairSpeeds(2)},
                          {{2, 3}, PairSpeeds(2), PairSpeeds(2)},
                          {{4, 5}, PairSpeeds(2), PairSpeeds(2)},
                          {{6}, PairSpeeds(1), PairSpeeds(1)}};
  test.across.groups = {{{0, 2, 4, 6}, PairSpeeds(4), PairSpeeds(4)},
                        {{1, 3, 5}, PairSpeeds(3), PairSpeeds(3)}};
  for (GroupSpeeds& rail : test.across.groups)
    for (int a = 0; a < rail.bytes.size(); ++a)
      for (int b = a + 1; b < rail.bytes.size(); ++b) {
        rail.bytes.set(a, b, 20e9);
        rail.messages.set(a, b, 3e5);
      }
  const auto report = report_pairs(test, {"a", "a", "b", "b", "c", "c", "d"});
  EXPECT_THAT(report.slow, ElementsAre());
  EXPECT_NEAR(report.maps[0].speeds.at(0, 1), 40e9, 1);
  EXPECT_NEAR(report.maps[0].speeds.at(0, 3), 20e9, 1);
}

TEST(DoctorPairReport, ARailIsSlow) {
  const auto report = report_of([](int a, int b) { return across(a, b) && (a == 7 || b == 7) ? 0.4 : 1; });
  EXPECT_THAT(report.slow,
              ElementsAre(HasSubstr("rank 7 (node3) is slow with its partners on all other nodes: ")));
}

TEST(DoctorPairReport, ALinkIsSlow) {
  const auto report = report_of([](int a, int b) {
    const int low = std::min(a, b) / kLocal, high = std::max(a, b) / kLocal;
    return low == 1 && high == 4 ? 0.3 : 1;
  });
  EXPECT_THAT(report.slow, ElementsAre(HasSubstr("node2 and node5 reach ")));
}

TEST(DoctorPairReport, ARankOfANodeIsSlowInside) {
  const auto report = report_of([](int a, int b) { return !across(a, b) && (a == 10 || b == 10) ? 0.3 : 1; });
  EXPECT_THAT(report.slow,
              ElementsAre(HasSubstr("rank 10 (node4) is slow with all other ranks of its node: ")));
}

TEST(DoctorPairReport, ANodeIsSlowInside) {
  const auto report = report_of([](int a, int b) { return !across(a, b) && a / kLocal == 5 ? 0.5 : 1; });
  EXPECT_THAT(report.slow, ElementsAre(HasSubstr("node6 is slow internally: its ranks reach 5")));
}

TEST(DoctorPairReport, RanksThatWaitForCoresAreNotNamed) {
  const auto slow = [](double share) {
    return [share](int a, int b) { return across(a, b) && (a / kLocal == 3 || b / kLocal == 3) ? share : 1; };
  };
  EXPECT_TRUE(report_of(slow(0.5), /*crowded=*/true).slow.empty());
  const auto report = report_of(slow(0.05), /*crowded=*/true);
  EXPECT_THAT(report.slow, ElementsAre(HasSubstr("node4 is slow with all other nodes")));
  EXPECT_THAT(report.notes, ElementsAre(HasSubstr("more ranks than cores")));
}

TEST(DoctorPairReport, SaysWhenItIsASample) {
  PairTest test;
  test.across.num_rounds = 999;
  test.across.plan = plan_meetings(999, 0, 0.1, 25);
  GroupSpeeds pair{{0, 1}, PairSpeeds(2), PairSpeeds(2)};
  pair.bytes.set(0, 1, 1e9);
  pair.messages.set(0, 1, 1e5);
  test.across.groups = {pair};
  test.in_nodes.groups = {{{0}, PairSpeeds(1), PairSpeeds(1)}, {{1}, PairSpeeds(1), PairSpeeds(1)}};
  const auto report = report_pairs(test, {"a", "b"});
  EXPECT_TRUE(report.slow.empty());
  EXPECT_THAT(report.notes.back(), HasSubstr("a sample of pairs of nodes: 125 of 999 rounds"));
}

}  // namespace
}  // namespace shardmark::doctor
