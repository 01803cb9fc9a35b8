// Tests the warnings about parallel layouts whose process groups span several nodes, on 16 invented ranks on
// 2 nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doctor/process_groups.h"
#include "doctor_world.h"

namespace shardmark::doctor {
namespace {

using ::testing::HasSubstr;

struct Layout {
  int64_t tensor = 1, context = 1, pipeline = 1;
  std::string rank_order = "dp-pp";
  int64_t ranks = 16;
  int64_t expert = 1, dispatch = kDispatchCopies;
};

Point point_of(const Layout& layout) {
  Point point;
  point.workload = "training";
  point.ranks = layout.ranks;
  point.training.tensor = layout.tensor;
  point.training.context = layout.context;
  point.training.pipeline = layout.pipeline;
  point.training.rank_order = layout.rank_order;
  point.training.expert = layout.expert;
  point.training.dispatch = layout.dispatch;
  return point;
}

// Ranks are assigned to the nodes in turn, as by --map-by node.
World dealt_round() {
  World world = healthy_world();
  for (int64_t rank = 0; rank < 16; ++rank) {
    RankFacts& facts = world[static_cast<size_t>(rank)];
    facts.host = "node" + std::to_string(rank % 2 + 1);
    facts.machine = "kernel-" + std::to_string(rank % 2);
  }
  return world;
}

std::vector<std::string> told(const World& world, const std::vector<Layout>& layouts) {
  std::vector<Point> points;
  for (const Layout& layout : layouts) points.push_back(point_of(layout));
  std::vector<std::string> texts;
  for (const Finding& finding : check_process_groups(world, points)) {
    EXPECT_EQ(finding.severity, Severity::warning);
    texts.push_back(to_text(finding));
  }
  return texts;
}

TEST(DoctorGroups, OfExpertsOnSeveralNodesAreNamed) {
  EXPECT_TRUE(told(healthy_world(), {{.expert = 8}, {.pipeline = 2, .expert = 8}}).empty());
  EXPECT_THAT(
      told(healthy_world(), {{.expert = 16}}),
      testing::ElementsAre(HasSubstr("ranks 0-15: expert 16: ranks that share the experts of a layer are "
                                     "on 2 nodes, and exchange between them inside every layer")));
  EXPECT_THAT(
      told(healthy_world(), {{.pipeline = 2, .rank_order = "pp-dp", .expert = 8}}),
      testing::ElementsAre(HasSubstr("pipeline 2 x expert 8: ranks that share the experts of a layer")));
  // Tokens that travel once to each 8 ranks travel between nodes as they should.
  EXPECT_TRUE(told(healthy_world(), {{.expert = 16, .dispatch = 8}}).empty());
  EXPECT_THAT(told(dealt_round(), {{.expert = 16, .dispatch = 8}}),
              testing::ElementsAre(HasSubstr("dispatch 8: ranks that share the experts of a layer are on 2 "
                                             "nodes")));
}

TEST(DoctorGroups, InsideANodeAreAsTheyShouldBe) {
  EXPECT_TRUE(
      told(healthy_world(), {{}, {.tensor = 8}, {.tensor = 2, .context = 4}, {.tensor = 4, .pipeline = 4}})
          .empty());
  EXPECT_TRUE(
      told(healthy_world(), {{.tensor = 2, .context = 2, .pipeline = 2, .rank_order = "pp-dp"}}).empty());
  EXPECT_TRUE(told(dealt_round(), {{}, {.pipeline = 4}}).empty()) << "stages and copies may span nodes";
  EXPECT_TRUE(told({healthy_rank(0)}, {{.ranks = 1}}).empty());
}

TEST(DoctorGroups, OfMoreRanksThanANodeHas) {
  EXPECT_THAT(
      told(healthy_world(), {{.tensor = 16}}),
      testing::ElementsAre(
          "ranks 0-15: tensor 16: ranks that share every block are on 2 nodes, and exchange between them "
          "inside every block; take a value that divides the ranks of each node (8 at most)"));
  EXPECT_THAT(told(healthy_world(), {{.tensor = 4, .context = 4}}),
              testing::ElementsAre(
                  HasSubstr("tensor 4 x context 4: ranks that share every sequence are on 2 nodes")));
  EXPECT_THAT(told(healthy_world(), {{.context = 2, .pipeline = 8, .rank_order = "pp-dp"}}),
              testing::ElementsAre(HasSubstr("pipeline 8 x context 2: ranks that share every sequence")));
}

// With 6 ranks per node, a process group of 4 ranks is on one node or on two.
TEST(DoctorGroups, ThatDoNotDivideTheRanksOfANode) {
  World world = healthy_world();
  for (size_t rank = 0; rank < world.size(); ++rank) {
    world[rank].host = "node" + std::to_string(rank / 6 + 1);
    world[rank].machine = "kernel-" + std::to_string(rank / 6);
  }
  EXPECT_THAT(told(world, {{.tensor = 4}}), testing::ElementsAre(testing::AllOf(
                                                HasSubstr("ranks 4-7: tensor 4"), HasSubstr("(6 at most)"))));
  EXPECT_TRUE(told(world, {{.tensor = 2}}).empty());
  EXPECT_TRUE(told(world, {{.tensor = 4, .ranks = 4}}).empty()) << "its ranks are on the first node";
}

TEST(DoctorGroups, WhoseNeighboursAreOnOtherNodes) {
  EXPECT_THAT(
      told(dealt_round(), {{.tensor = 2}}),
      testing::ElementsAre(testing::AllOf(HasSubstr("tensor 2: ranks that share every block are on 2 nodes"),
                                          HasSubstr("srun --distribution=block"))));
  EXPECT_TRUE(told(dealt_round(), {{.context = 2, .pipeline = 2, .rank_order = "pp-dp"}}).empty())
      << "every second rank is on the same node";
}

// A suite has many points with the same layout. Each kind of process group is reported once.
TEST(DoctorGroups, AreToldOnce) {
  EXPECT_EQ(
      told(healthy_world(), {{.tensor = 16}, {.tensor = 16}, {.tensor = 16, .rank_order = "pp-dp"}}).size(),
      1U);
  EXPECT_EQ(told(dealt_round(), {{.tensor = 2}, {.tensor = 4}, {.tensor = 2, .context = 2}}).size(), 2U)
      << "every second rank is on the same node";
  Point impossible = point_of({.tensor = 16});
  impossible.impossible = "too large";
  Point collective = point_of({.tensor = 16});
  collective.workload = "collective";
  EXPECT_TRUE(check_process_groups(healthy_world(), {impossible, collective}).empty());
}

}  // namespace
}  // namespace shardmark::doctor
