// Verdicts on nodes: clusters without a fault have no node named more often than is promised, whatever their
// size; planted faults are found and named, alone and together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <stdexcept>

#include "analysis/overview/overview.h"
#include "analysis/stats/nodes.h"
#include "analysis_fixture.h"

namespace shardmark {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const NodeQuantity& quantity_of(std::string_view key) {
  for (const NodeQuantity& one : node_quantities())
    if (one.key == key) return one;
  throw std::out_of_range(std::string(key));
}

// The values of healthy ranks, which differ by `times` the quantity's usual spread.
std::vector<double> healthy(const NodeQuantity& quantity, size_t num_ranks, std::mt19937& random,
                            double times = 1) {
  std::normal_distribution<double> noise(0, times * quantity.spread);
  std::vector<double> values;
  for (size_t i = 0; i < num_ranks; ++i) values.push_back(5 * std::exp(noise(random)));
  return values;
}

size_t num_named(const Judged& judged) {
  return static_cast<size_t>(std::count(judged.is_named.begin(), judged.is_named.end(), true));
}

// The number of healthy clusters, of `num_clusters`, of which any rank is named for any quantity.
int false_alarms(size_t num_ranks, int num_clusters, double times) {
  std::mt19937 random(static_cast<uint32_t>(num_ranks));
  const size_t num_values = node_quantities().size() * num_ranks;
  int alarms = 0;
  for (int i = 0; i < num_clusters; ++i) {
    size_t named = 0;
    for (const NodeQuantity& quantity : node_quantities())
      named += num_named(judge(quantity, healthy(quantity, num_ranks, random, times), num_values));
    alarms += named > 0;
  }
  return alarms;
}

// One in 50 is promised. So many alarms are found by chance in less than one of 1,000 tests, if one in 50 is
// what happens.
TEST(Nodes, HealthyClustersOfAnySizeHaveNoNodeNamed) {
  for (const auto& [num_ranks, num_clusters] :
       {std::pair<size_t, int>{3, 4000}, {4, 4000}, {8, 4000}, {64, 1000}, {1000, 200}, {10000, 50}}) {
    const double mean = kFalseAlarms * num_clusters;
    EXPECT_LE(false_alarms(num_ranks, num_clusters, 1), mean + 3.1 * std::sqrt(mean) + 1) << num_ranks;
  }
}

// What ranks of a cluster really differ by is learned from the ranks. Few ranks teach little: of 3 and 4 that
// differ by half more than usual, as many have one named as is promised.
TEST(Nodes, HealthyRanksMayDifferMoreThanUsual) {
  for (const size_t num_ranks : {3, 4, 8})
    EXPECT_LE(false_alarms(num_ranks, 4000, 1.5), 80 + 3.1 * std::sqrt(80) + 1) << num_ranks;
  for (const auto& [num_ranks, num_clusters] : {std::pair<size_t, int>{64, 1000}, {1000, 200}, {10000, 50}}) {
    const double mean = kFalseAlarms * num_clusters;
    EXPECT_LE(false_alarms(num_ranks, num_clusters, 3), mean + 3.1 * std::sqrt(mean) + 1) << num_ranks;
  }
}

TEST(Nodes, HalfTheSpeedIsNamedAndNothingElse) {
  for (const NodeQuantity& quantity : node_quantities()) {
    if (quantity.watch > 0.5) continue;  // half the speed is what these may vary by: latency and storage
    for (const size_t num_ranks : {3, 4, 8, 1000, 10000})
      for (uint32_t seed = 0; seed < 20; ++seed) {
        if (num_ranks < 8 && quantity.spread > 0.05) continue;  // messages differ too much for so few ranks
        std::mt19937 random(seed);
        std::vector<double> values = healthy(quantity, num_ranks, random);
        const size_t slow = seed % num_ranks;
        values[slow] *= quantity.is_rate ? 0.5 : 2;
        const Judged judged = judge(quantity, values, 8 * num_ranks);
        EXPECT_TRUE(judged.is_named[slow]) << quantity.key << " among " << num_ranks;
        EXPECT_EQ(num_named(judged), 1) << quantity.key << " among " << num_ranks;
        EXPECT_NEAR(judged.excess[slow], 1, 0.5);
      }
  }
}

// Faults only ever make ranks slower, so even half of the ranks may be slow.
TEST(Nodes, ManySlowRanksAreNamedTogether) {
  const NodeQuantity& quantity = quantity_of(node_tests::kBetweenNodes);
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    std::vector<double> values = healthy(quantity, 16, random);
    for (size_t rank = 0; rank < 8; ++rank) values[rank] *= 0.4;
    const Judged judged = judge(quantity, values, 128);
    for (size_t rank = 0; rank < 16; ++rank) EXPECT_EQ(judged.is_named[rank], rank < 8) << rank;
  }
}

// A value that is much better than all others, such as a file that was read from memory, hides nobody.
TEST(Nodes, AVeryFastRankHidesNobody) {
  const NodeQuantity& quantity = quantity_of(node_tests::kRead);
  const Judged judged = judge(quantity, {500, 5, 5.1, 4.9, 5, 5.2, 4.8, 0.5}, 64);
  EXPECT_THAT(judged.is_named, ElementsAre(false, false, false, false, false, false, false, true));
  EXPECT_NEAR(judged.excess[7], 9, 0.5);
}

TEST(Nodes, TwoRanksAreComparedWithABaselineOnly) {
  const NodeQuantity& quantity = quantity_of(node_tests::kProductS);
  EXPECT_EQ(num_named(judge(quantity, {1, 2}, 2)), 0);
  const Judged judged = judge(quantity, {1, 2}, 2, 1.0);
  EXPECT_THAT(judged.is_named, ElementsAre(false, true));
  EXPECT_EQ(num_named(judge(quantity, {2, 2}, 2, 1.0)), 2);
  EXPECT_EQ(num_named(judge(quantity, {0.5, 0.5}, 2, 1.0)), 0) << "faster than the baseline";
}

TEST(Nodes, WhatWasNotMeasuredIsNotJudged) {
  const Judged judged = judge(quantity_of(node_tests::kWritten), {NAN, 1, NAN, 1, 0, 1e-3, 1}, 7);
  EXPECT_THAT(judged.is_named, ElementsAre(false, false, false, false, false, true, false));
  EXPECT_TRUE(std::isnan(judged.excess[0]));
  EXPECT_EQ(num_named(judge(quantity_of(node_tests::kWritten), {}, 0)), 0);
}

// Eight nodes, node0 to node7, with two ranks each. All quantities are healthy.
NodeTests healthy_tests() {
  NodeTests tests;
  std::mt19937 random(3);
  for (const NodeQuantity& quantity : node_quantities())
    if (quantity.key != "training") tests.by_rank[std::string(quantity.key)] = healthy(quantity, 16, random);
  for (const std::string_view key : {node_tests::kWritten, node_tests::kRead})
    for (size_t rank = 1; rank < 16; rank += 2) tests.by_rank[std::string(key)][rank] = NAN;
  tests.by_rank[std::string(node_tests::kWrongProduct)].assign(16, 0);
  for (int rank = 0; rank < 16; ++rank) tests.hosts.push_back("node" + std::to_string(rank / 2));
  return tests;
}

StudyData study_with(const NodeTests& tests, std::vector<Record> records = {}) {
  StudyData study = study_of(std::move(records));
  Environment& e = study.environment;
  e.nodes.clear();
  e.rank_nodes.clear();
  e.world_ranks = 16;
  e.devices.assign(16, "Some CPU");
  for (int rank = 0; rank < 16; ++rank) e.rank_nodes.push_back("node" + std::to_string(rank / 2));
  for (int node = 0; node < 8; ++node) e.nodes.push_back("node" + std::to_string(node));
  keep(tests, e);
  return study;
}

NodesJudged judged(const StudyData& study) { return judge_nodes({study}).value(); }

// "node3 out: words; words", for each node that is not in service.
std::vector<std::string> named(const NodesJudged& all) {
  std::vector<std::string> lines;
  for (const JudgedNode& node : all.nodes) {
    if (node.verdict == NodeVerdict::in_service) continue;
    std::string line = node.name + " " + std::string(to_text(node.verdict)) + ":";
    for (const NodeEvidence& one : node.evidence) line += " " + one.words + ";";
    lines.push_back(line);
  }
  return lines;
}

TEST(Nodes, AHealthyClusterIsInService) {
  const NodesJudged all = judged(study_with(healthy_tests()));
  EXPECT_THAT(named(all), IsEmpty());
  EXPECT_THAT(all.nodes, SizeIs(8));
  EXPECT_THAT(all.remarks, IsEmpty());
  EXPECT_EQ(all.basis, "the other ranks of this study");
}

TEST(Nodes, OtherStudiesHaveNoVerdict) {
  const std::vector<StudyData> studies = {study_of({training_record("ddp", 2, 4, 0.1)})};
  EXPECT_FALSE(judge_nodes(studies).has_value());
  EXPECT_THAT(nodes_overview(judge_nodes(studies)), IsEmpty());
  EXPECT_THAT(nodes_table(judge_nodes(studies)).rows, IsEmpty());
}

TEST(Nodes, PlantedFaultsAreFoundTogether) {
  NodeTests tests = healthy_tests();
  const auto slower = [&](std::string_view key, size_t rank, double times) {
    const bool is_rate = quantity_of(key).is_rate;
    tests.by_rank.at(std::string(key))[rank] *= is_rate ? 1 / times : times;
  };
  slower(node_tests::kBetweenNodes, 2, 2);  // the link of node1, which both of its ranks use
  slower(node_tests::kBetweenNodes, 3, 2);
  slower(node_tests::kProductS, 5, 2);  // a core at half speed
  slower(node_tests::kProductS, 7, 1.12);
  tests.damage = {{8, 0, 1}, {8, 2, 1}, {8, 15, 1}};  // a bit flips in what rank 8 sends
  tests.by_rank.at(std::string(node_tests::kWrongProduct))[11] = 1;
  tests.found.push_back({"error", {12}, "cannot write a file of 256 MiB in /tmp: No space left on device"});
  tests.found.push_back({"error", {14, 15}, "NCCL 2.27 on node7, 2.28 elsewhere; load the same modules"});
  const NodesJudged all = judged(study_with(tests));
  EXPECT_EQ(all.count(NodeVerdict::out), 6);
  EXPECT_EQ(all.count(NodeVerdict::watch), 1);
  EXPECT_THAT(
      named(all),
      ElementsAre(
          AllOf(HasSubstr("node1 out: its ranks take "), HasSubstr("% longer for messages to other nodes;")),
          AllOf(HasSubstr("node2 out: rank 5 takes "), HasSubstr("% longer for a matrix product;")),
          "node4 out: 3 elements of what rank 8 sent to 3 ranks arrived with another value;",
          "node5 out: rank 11 returned another result for a matrix product than most ranks, or than before;",
          "node6 out: cannot write a file of 256 MiB in /tmp: No space left on device;",
          "node7 out: NCCL 2.27 on node7, 2.28 elsewhere; load the same modules;",
          AllOf(HasSubstr("node3 watch: rank 7 takes 1"), HasSubstr("% longer for a matrix product;"))));
}

TEST(Nodes, ARankThatTrainsSlowlyIsNamed) {
  Record record = training_record("ddp", 16, 4, 0.1);
  std::mt19937 random(1);
  std::normal_distribution<double> noise(0, 0.03);
  for (const char* name : {"forward", "backward"}) {
    Series series{name, 16, 30, {}};
    for (int rank = 0; rank < 16; ++rank)
      for (int step = 0; step < 30; ++step)
        series.values.push_back((rank == 9 ? 0.1 : 0.05) * std::exp(noise(random)));
    record.samples.push_back(series);
  }
  const NodesJudged all = judged(study_with(healthy_tests(), {record}));
  EXPECT_THAT(named(all), ElementsAre(AllOf(HasSubstr("node4 out: rank 9 takes "),
                                            HasSubstr("longer for the same training step"))));
}

// A warning of the preflight about some nodes is evidence; one about all nodes says nothing about any.
TEST(Nodes, WarningsOfSomeNodesAreWatched) {
  NodeTests tests = healthy_tests();
  tests.found.push_back({"warning", {6}, "rank 6 is far from its GPU; bind it"});
  std::vector<int64_t> everyone(16);
  std::iota(everyone.begin(), everyone.end(), 0);
  tests.found.push_back({"warning", everyone, "no rank is bound; bind them"});
  const NodesJudged all = judged(study_with(tests));
  EXPECT_THAT(named(all), ElementsAre("node3 watch: rank 6 is far from its GPU; bind it;"));
  EXPECT_THAT(all.remarks, ElementsAre("warning: no rank is bound; bind them"));
}

TEST(Nodes, WaitingForCoresHidesAllButManyTimesSlower) {
  NodeTests tests = healthy_tests();
  tests.is_crowded = true;
  tests.by_rank.at(std::string(node_tests::kProductS))[3] *= 2;
  tests.by_rank.at(std::string(node_tests::kBetweenNodes))[4] /= 20;
  tests.by_rank.at(std::string(node_tests::kBetweenNodes))[5] /= 20;
  const NodesJudged all = judged(study_with(tests));
  EXPECT_THAT(named(all), ElementsAre(HasSubstr("node2 out: its ranks take ")));
  EXPECT_THAT(all.remarks, Contains(HasSubstr("more ranks than cores")));
}

TEST(Nodes, ABaselineTellsWhereAllNodesAreSlower) {
  NodeTests tests = healthy_tests();
  tests.baseline = "results/accept-0001.h5";
  tests.expected = medians_of(tests);
  EXPECT_THAT(named(judged(study_with(tests))), IsEmpty());
  for (double& rate : tests.by_rank.at(std::string(node_tests::kCopied))) rate /= 1.9;
  const NodesJudged all = judged(study_with(tests));
  EXPECT_EQ(all.count(NodeVerdict::out), 8);
  EXPECT_EQ(all.basis, "results/accept-0001.h5");
  // Launches of a healthy machine differ by some percent.
  NodeTests later = healthy_tests();
  later.baseline = "x.h5";
  later.expected = medians_of(later);
  for (double& time : later.by_rank.at(std::string(node_tests::kProductS))) time *= 1.09;
  EXPECT_THAT(named(judged(study_with(later))), IsEmpty());
  later.expected.erase("copy_rate");
  EXPECT_THAT(judged(study_with(later)).remarks,
              ElementsAre(HasSubstr("the baseline has no values of: copy;")));
}

TEST(Nodes, TheFirstScreenAndTheTableSayTheSame) {
  NodeTests tests = healthy_tests();
  tests.by_rank.at(std::string(node_tests::kProductS))[5] *= 2;
  const std::vector<StudyData> studies = {study_with(tests)};
  const std::vector<std::string> lines = nodes_overview(judge_nodes(studies));
  ASSERT_THAT(lines, SizeIs(4));
  EXPECT_EQ(lines[0], "1 node is out, 7 nodes are in service.");
  EXPECT_THAT(lines[1], HasSubstr("out: node2: rank 5 takes "));
  EXPECT_EQ(lines[2], "in service: node0, node1, node3 and 4 more.");
  EXPECT_THAT(lines[3], HasSubstr("Differences between healthy nodes name one in at most one of 50 runs."));
  const std::string table = to_text(nodes_table(judge_nodes(studies)));
  EXPECT_THAT(table, HasSubstr("Times are compared with the other ranks of this study."));
  EXPECT_THAT(table, HasSubstr("node2      2  out"));
}

// What arrives damaged at one rank wherever it comes from is that rank's fault; of one pair either may be
// faulty.
TEST(Nodes, DamagedMessagesBlameWhoExplainsThem) {
  NodeTests tests = healthy_tests();
  tests.damage = {{0, 9, 2}, {2, 9, 1}, {4, 9, 1}, {6, 7, 5}};
  EXPECT_THAT(
      named(judged(study_with(tests))),
      ElementsAre("node4 out: 4 elements of what 3 ranks sent to rank 9 arrived with another value;",
                  "node3 watch: 5 elements of what rank 6 sent to rank 7 arrived with another value, and "
                  "either of them may be faulty;"));
}

// Between two nodes there is one link, and both see the same of it.
TEST(Nodes, OfTwoNodesEitherMayBeTheReason) {
  NodeTests tests = healthy_tests();
  tests.hosts.assign(16, "node0");
  for (size_t rank = 8; rank < 16; ++rank) tests.hosts[rank] = "node1";
  for (const size_t rank : {3, 11}) tests.by_rank.at(std::string(node_tests::kBetweenNodes))[rank] /= 3;
  StudyData study = study_with(tests);
  study.environment.rank_nodes = tests.hosts;
  const NodesJudged all = judged(study);
  EXPECT_EQ(all.count(NodeVerdict::watch), 2);
  EXPECT_THAT(named(all),
              Each(HasSubstr("messages to other nodes, and either of the two may be the reason")));
}

// Wrong results of an earlier start count, times do not; starts on other hosts do not count at all.
TEST(Nodes, AllStartsOnTheSameHostsCount) {
  NodeTests first = healthy_tests(), elsewhere = healthy_tests(), last = healthy_tests();
  first.by_rank.at(std::string(node_tests::kWrongProduct))[4] = 1;
  first.by_rank.at(std::string(node_tests::kProductS))[6] *= 3;
  elsewhere.hosts[0] = "node99";
  elsewhere.by_rank.at(std::string(node_tests::kWrongProduct))[10] = 1;
  StudyData study = study_with(first);
  keep(elsewhere, study.environment);
  keep(last, study.environment);
  EXPECT_THAT(named(judged(study)), ElementsAre(HasSubstr("node2 out: rank 4 returned another result")));
}

TEST(Nodes, ThoseThatWereNotTestedAreNotInService) {
  NodeTests tests;
  tests.hosts = healthy_tests().hosts;
  tests.is_stopped = true;
  tests.found.push_back({"error", {2, 3}, "no GPU on node1, while 14 other ranks have one; leave it out"});
  const NodesJudged all = judged(study_with(tests));
  EXPECT_EQ(all.count(NodeVerdict::out), 1);
  EXPECT_EQ(all.count(NodeVerdict::not_tested), 7);
  EXPECT_THAT(all.remarks, Contains(HasSubstr("nothing was tested")));
  EXPECT_EQ(nodes_overview(all).front(), "1 node is out, 7 nodes were not tested.");
}

TEST(Nodes, DamagedTestsAreNoVerdict) {
  StudyData study = study_with(healthy_tests());
  (*study.environment.facts)[kNodeTestsFact] = {{{"by_rank", "x"}}};
  EXPECT_FALSE(judge_nodes({study}).has_value());
  NodeTests short_tests = healthy_tests();
  short_tests.by_rank.at(std::string(node_tests::kProductS)).resize(3);
  short_tests.found.push_back({"error", {99}, "of a rank that is not there"});
  short_tests.damage = {{77, 78, 1}};
  const NodesJudged all = judged(study_with(short_tests));
  EXPECT_THAT(named(all), IsEmpty());
  EXPECT_THAT(all.remarks, ElementsAre("error: of a rank that is not there"));
}

TEST(Nodes, TestsComeBackFromTheStudy) {
  NodeTests tests = healthy_tests();
  tests.found.push_back({"warning", {1, 2}, "words"});
  tests.damage = {{1, 2, 3}};
  tests.notes = {"a note"};
  tests.is_crowded = true;
  tests.baseline = "x.h5";
  tests.expected = {{"product_time", 2.5}};
  Environment environment;
  keep(healthy_tests(), environment);
  keep(tests, environment);
  ASSERT_THAT(node_tests_of(environment), SizeIs(2));
  const NodeTests back = node_tests_of(environment).back();
  EXPECT_EQ(back.hosts, tests.hosts);
  EXPECT_EQ(back.by_rank.at("product_time"), tests.by_rank.at("product_time"));
  EXPECT_TRUE(std::isnan(back.by_rank.at("write_rate")[1]));
  EXPECT_EQ(back.found.front().ranks, tests.found.front().ranks);
  EXPECT_EQ(back.found.front().what, "words");
  EXPECT_EQ(back.damage.front().elements, 3);
  EXPECT_EQ(back.notes, tests.notes);
  EXPECT_TRUE(back.is_crowded);
  EXPECT_FALSE(back.is_stopped);
  EXPECT_EQ(back.baseline, "x.h5");
  EXPECT_EQ(back.expected, tests.expected);
  EXPECT_TRUE(back.has_faults());
  EXPECT_FALSE(healthy_tests().has_faults());
  EXPECT_EQ(medians_of(tests).count("wrong_product"), 0);
}

}  // namespace
}  // namespace shardmark
