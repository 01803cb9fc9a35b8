// A rank or node that takes longer to compute than the others is named, and no other rank or node is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "analysis/findings/findings.h"
#include "analysis/stats/slow_ranks.h"
#include "analysis_fixture.h"

namespace shardmark {
namespace {

using ::testing::HasSubstr;

// Returns the forward and backward times of 30 steps with noise of 3 %. `factors` says how much longer each
// rank takes.
Record noisy_record(const std::vector<double>& factors, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  const auto ranks = static_cast<int64_t>(factors.size());
  constexpr int64_t kSteps = 30;
  Record record = training_record("ddp", ranks, 4, 0.1);
  for (const char* name : {"forward", "backward"}) {
    Series series{name, ranks, kSteps, {}};
    for (const double factor : factors)
      for (int64_t step = 0; step < kSteps; ++step)
        series.values.push_back(0.05 * factor * std::exp(0.03 * normal(random)));
    record.samples.push_back(series);
  }
  return record;
}

StudyData study_on_nodes(std::vector<Record> records, int64_t ranks_per_node) {
  StudyData study = study_of(std::move(records));
  Environment& e = study.environment;
  e.nodes.clear();
  e.devices.assign(8, "Some CPU");
  for (int64_t rank = 0; rank < 8; ++rank) {
    e.rank_nodes.push_back("node" + std::to_string(rank / ranks_per_node));
    if (rank % ranks_per_node == 0) e.nodes.push_back(e.rank_nodes.back());
  }
  return study;
}

std::vector<Slow> slow_of(const StudyData& study) { return slow_ranks(merge_repeats({study})); }

TEST(SlowRanks, ARankThatComputesLongerIsNamedWithItsHost) {
  const std::vector<StudyData> studies = {study_on_nodes({noisy_record({1, 1, 1, 1, 1, 1.12, 1, 1})}, 4)};
  const auto points = merge_repeats(studies);
  const auto findings = findings_of(points);
  ASSERT_EQ(findings.size(), 1);
  EXPECT_EQ(findings.front().kind, "slow rank");
  EXPECT_THAT(findings.front().words, HasSubstr("rank 5 of node1 takes 1"));
  EXPECT_FALSE(findings.front().excludes);
}

TEST(SlowRanks, ASlowNodeIsNamedAndItsRanksAreNot) {
  const StudyData study = study_on_nodes({noisy_record({1, 1, 1, 1, 1.2, 1.2, 1, 1})}, 2);
  const auto slow = slow_of(study);
  ASSERT_EQ(slow.size(), 1);
  EXPECT_TRUE(slow.front().is_node);
  EXPECT_EQ(slow.front().host, "node2");
  EXPECT_NEAR(slow.front().excess, 0.2, 0.03);
}

TEST(SlowRanks, OneOfASlowNodeMayBeSlowerStill) {
  const auto nodes = slow_of(study_on_nodes({noisy_record({1, 1, 1, 1, 1.2, 1.2, 1.2, 1.6})}, 4));
  ASSERT_EQ(nodes.size(), 2);
  EXPECT_TRUE(nodes[0].is_node);
  EXPECT_EQ(nodes[1].rank, 7);
  EXPECT_NEAR(nodes[1].excess, 0.33, 0.04);  // relative to the other ranks of its node
}

TEST(SlowRanks, OfSeveralPointsTheWorstStandsForAll) {
  Record other = noisy_record({1, 1.1, 1, 1}, 2);
  other.point.training.batch_size = 8;
  const auto slow = slow_of(study_on_nodes({noisy_record({1, 1.3, 1, 1}), other}, 4));
  ASSERT_EQ(slow.size(), 1);
  EXPECT_EQ(slow.front().rank, 1);
  EXPECT_EQ(slow.front().others, 1);
  EXPECT_NEAR(slow.front().excess, 0.3, 0.03);
}

// In 300 studies of 8 equal ranks whose steps vary by 3 %, no rank is called slow.
TEST(SlowRanks, EqualRanksAreNotSlow) {
  for (uint32_t seed = 0; seed < 300; ++seed)
    EXPECT_TRUE(slow_of(study_on_nodes({noisy_record(std::vector<double>(8, 1.0), seed)}, 4)).empty())
        << seed;
}

// Ranks with popular experts compute more than others.
TEST(SlowRanks, NothingIsSaidWhereRanksShareExperts) {
  Record record = noisy_record({1, 1.3, 1, 1});
  record.point.training.expert = 2;
  EXPECT_TRUE(slow_of(study_on_nodes({record}, 4)).empty());
}

TEST(SlowRanks, NothingIsSaidWithoutSamples) {
  EXPECT_TRUE(slow_of(study_on_nodes({training_record("ddp", 8, 4, 0.1)}, 4)).empty());
  Record broken = noisy_record({1, 2, 1, 1});
  broken.samples.front().values[3] = Measures::kNone;
  EXPECT_TRUE(slow_of(study_on_nodes({broken}, 4)).empty());
}

}  // namespace
}  // namespace shardmark
