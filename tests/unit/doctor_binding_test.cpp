// Tests how cores are assigned to ranks on several topologies, the doctor's checks of bad bindings, and the
// text of placements.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "doctor/binding.h"
#include "doctor/placement.h"
#include "doctor_world.h"

namespace shardmark::doctor {
namespace {

using ::testing::HasSubstr;

// Numbers processors as Linux does: the second hardware threads of all cores follow the first ones.
std::vector<Core> node_of(int num_numa, int cores_each, int threads = 1) {
  std::vector<Core> cores;
  for (int i = 0; i < num_numa * cores_each; ++i) {
    Core core{i / cores_each, {}};
    for (int thread = 0; thread < threads; ++thread) core.cpus.push_back(i + thread * num_numa * cores_each);
    cores.push_back(core);
  }
  return cores;
}

Numbers up_to(int end) {
  Numbers all;
  for (int i = 0; i < end; ++i) all.push_back(i);
  return all;
}

std::vector<Seat> seats(size_t num, int cpus, std::vector<int> gpu_numa = {}) {
  std::vector<Seat> all(num, Seat{up_to(cpus)});
  for (size_t i = 0; i < gpu_numa.size(); ++i) all[i].gpu_numa = gpu_numa[i];
  return all;
}

std::vector<std::string> shares(const Binding& binding) {
  std::vector<std::string> texts;
  for (const Numbers& cpus : binding.cpus) texts.push_back(ranges_text(cpus));
  return texts;
}

using Texts = std::vector<std::string>;

TEST(DoctorBinding, TwoSocketsOfFourGpus) {
  const auto binding = assign_cores(node_of(2, 16), seats(8, 32, {0, 0, 0, 0, 1, 1, 1, 1}), 0);
  EXPECT_EQ(shares(binding), (Texts{"0-3", "4-7", "8-11", "12-15", "16-19", "20-23", "24-27", "28-31"}));
  const auto crossed = assign_cores(node_of(2, 16), seats(4, 32, {1, 0, 1, 0}), 0);
  EXPECT_EQ(shares(crossed), (Texts{"16-23", "0-7", "24-31", "8-15"}));
}

// The ranks share that socket equally, and the other socket stays idle.
TEST(DoctorBinding, AllGpusOnOneSocket) {
  EXPECT_EQ(shares(assign_cores(node_of(2, 16), seats(4, 32, {1, 1, 1, 1}), 0)),
            (Texts{"16-19", "20-23", "24-27", "28-31"}));
  EXPECT_EQ(shares(assign_cores(node_of(2, 16), seats(3, 32, {1, 1, 0}), 0)),
            (Texts{"16-23", "24-31", "0-7"}));
}

TEST(DoctorBinding, OneSocket) {
  EXPECT_EQ(shares(assign_cores(node_of(1, 2), seats(2, 2), 0)), (Texts{"0", "1"}));
  EXPECT_EQ(shares(assign_cores(node_of(1, 8), seats(3, 8), 0)), (Texts{"0-1", "2-3", "4-5"}));
  EXPECT_EQ(shares(assign_cores(node_of(1, 4, 2), seats(2, 8), 0)), (Texts{"0-1,4-5", "2-3,6-7"}));
}

TEST(DoctorBinding, SpreadsOverNumaNodesWithoutCrossingThem) {
  EXPECT_EQ(shares(assign_cores(node_of(2, 4), seats(3, 8), 0)), (Texts{"0-1", "2-3", "4-5"}));
  EXPECT_EQ(shares(assign_cores(node_of(4, 8), seats(2, 32), 0)),
            (Texts{"0-15", "16-31"}));  // whole NUMA nodes
  EXPECT_EQ(shares(assign_cores(node_of(2, 3), seats(4, 6), 0)), (Texts{"0", "1", "3", "4"}));
}

TEST(DoctorBinding, LeavesRanksAloneWhereItMust) {
  EXPECT_TRUE(assign_cores(node_of(1, 2), seats(3, 2), 0).cpus.empty());    // fewer cores than ranks
  EXPECT_TRUE(assign_cores(node_of(2, 16), seats(1, 32), 0).cpus.empty());  // one rank
  EXPECT_TRUE(
      assign_cores(node_of(1, 8), seats(4, 8), 2.0).cpus.empty());  // a container with a quota of 2 cores
  EXPECT_FALSE(assign_cores(node_of(1, 8), seats(4, 8), 4.0).cpus.empty());
  // All 4 ranks are bound to the same 2 cores.
  EXPECT_TRUE(assign_cores(node_of(2, 16), seats(4, 2), 0).cpus.empty());
  std::vector<Seat> bound = {{{0, 1}}, {{2, 3}}};
  const auto kept = assign_cores(node_of(1, 8), bound, 0);
  EXPECT_TRUE(kept.cpus.empty());
  EXPECT_TRUE(kept.by_launcher);
}

TEST(DoctorBinding, StaysInsideTheCpuset) {
  std::vector<Seat> inside(2, Seat{{4, 5, 6, 7}});
  EXPECT_EQ(shares(assign_cores(node_of(2, 8), inside, 0)), (Texts{"4-5", "6-7"}));
}

// On every node, shares are equal, disjoint and allowed. If there are more ranks than NUMA nodes, each share
// is within one NUMA node.
TEST(DoctorBinding, AlwaysSharesFairly) {
  for (int numa = 1; numa <= 8; ++numa)
    for (int each = 1; each <= 9; ++each)
      for (size_t ranks = 2; ranks <= static_cast<size_t>(numa * each); ++ranks) {
        const auto cores = node_of(numa, each);
        const auto binding = assign_cores(cores, seats(ranks, numa * each), 0);
        ASSERT_EQ(binding.cpus.size(), ranks);
        std::set<int> taken;
        for (const Numbers& cpus : binding.cpus) {
          ASSERT_FALSE(cpus.empty()) << numa << " x " << each << " for " << ranks;
          for (int cpu : cpus) EXPECT_TRUE(taken.insert(cpu).second);
          if (ranks > static_cast<size_t>(numa)) {
            EXPECT_EQ(cpus.size(), binding.cpus.front().size());
            EXPECT_EQ(cpus.front() / each, cpus.back() / each) << numa << " x " << each << " for " << ranks;
          }
        }
      }
}

std::string only_finding(const World& world) {
  const Findings findings = examine(world);
  EXPECT_EQ(findings.size(), 1U);
  return findings.empty() ? ""
                          : to_text(findings.front().severity) + std::string(" ") + to_text(findings.front());
}

template <class Change>
World world_with(Change change) {
  World world = healthy_world(/*on_gpus=*/false);
  for (RankFacts& rank : world) change(rank);
  return world;
}

TEST(DoctorCores, SeveralRanksOnOneCore) {
  EXPECT_THAT(
      only_finding(world_with([](RankFacts& rank) {
        rank.cpu.allowed = "0";
        rank.cpu.cores = 1;
      })),
      HasSubstr("warning ranks 0-15: 8 ranks are bound to the same 1 core(s) of node1 and node2, of 112"));
}

TEST(DoctorCores, MoreThreadsThanCores) {
  EXPECT_THAT(only_finding(world_with([](RankFacts& rank) {
                if (rank.rank == 3) rank.cpu.threads = 28;
              })),
              HasSubstr("warning rank 3: a rank computes with 28 threads, but may run on 14 processor(s)"));
}

TEST(DoctorCores, HardwareThreadsMayCompute) {
  const World world = world_with([](RankFacts& rank) {
    const int64_t first = 14 * rank.local_rank;
    rank.cpu.allowed = fmt::format("{}-{},{}-{}", first, first + 13, first + 112, first + 125);
    rank.cpu.threads = 28;
  });
  EXPECT_TRUE(examine(world).empty());
}

TEST(DoctorCores, Unbound) {
  const auto unbound = [](RankFacts& rank) {
    rank.cpu.allowed = "0-111";
    rank.cpu.numa = "0-1";
    rank.cpu.cores = 112;
    rank.cpu.bound_by = "nobody";
  };
  EXPECT_THAT(only_finding(world_with(unbound)),
              HasSubstr("warning ranks 0-15: ranks are not bound and share the same 112 cores"));
  EXPECT_THAT(
      only_finding(world_with([&](RankFacts& rank) {
        unbound(rank);
        rank.binding_refused = true;
      })),
      HasSubstr(
          "note ranks 0-15: ranks are not bound and share the same 112 cores, as requested by --bind none"));
}

TEST(DoctorCores, MoreRanksThanCores) {
  const auto crowded = [](RankFacts& rank) { rank.cpu = {"Xeon", "0-3", "0", 4, 4, 1, 1, 0, "nobody"}; };
  EXPECT_THAT(only_finding(world_with(crowded)),
              HasSubstr("warning ranks 0-15: 8 ranks share 4 cores of node1 and node2"));
  EXPECT_THAT(only_finding(world_with([](RankFacts& rank) { rank.cpu.quota = 6.0; })),
              HasSubstr("8 ranks share 6 cores"));
}

TEST(DoctorCores, MostOfTheNodeIsIdle) {
  EXPECT_THAT(only_finding(world_with([](RankFacts& rank) {
                rank.cpu.allowed = std::to_string(rank.local_rank);
                rank.cpu.cores = rank.cpu.threads = 1;
                rank.cpu.bound_by = "launcher";
              })),
              HasSubstr("note ranks 0-15: ranks are bound to 8 of 112 cores of node1 and node2"));
}

TEST(DoctorCores, FarFromTheGpu) {
  World world = healthy_world();
  for (size_t rank = 8; rank < 12; ++rank) world[rank].gpu.numa = 1;
  EXPECT_THAT(only_finding(world), HasSubstr("warning ranks 8-11: cores far from the GPU (rank 8: cores of "
                                             "NUMA node 0, GPU 0000:10:00.0 on 1)"));
}

TEST(DoctorPlacement, IsOneLine) {
  EXPECT_EQ(placement_line(healthy_world(/*on_gpus=*/false)),
            "16 ranks on 2 nodes, each on 14 cores of its own; NUMA nodes 0-1");
  EXPECT_EQ(
      placement_line(healthy_world()),
      "16 ranks on 2 nodes, each on 14 cores of its own and a GPU of the same NUMA node; NUMA nodes 0-1");
  World world = healthy_world(/*on_gpus=*/false);
  for (RankFacts& rank : world) rank.cpu.allowed = "0-13";
  EXPECT_EQ(placement_line(world), "16 ranks on 2 nodes, each anywhere on 14 cores; NUMA nodes 0-1");
}

TEST(DoctorPlacement, TellsRanksThatSitAlikeOnce) {
  const auto kept = placement_json(healthy_world());
  ASSERT_EQ(kept.size(), 8U);
  EXPECT_EQ(kept[0].dump(),
            R"({"ranks":"0,8","cores":"0-13","numa":"0","gpu":"0000:10:00.0","bound_by":"shardmark"})");
  World world = healthy_world();
  const auto alike = node_placements(world);
  ASSERT_EQ(alike.size(), 1U);
  EXPECT_EQ(alike[0].nodes, (Texts{"node1", "node2"}));
  EXPECT_EQ(alike[0].ranks.size(), 8U);
  world[9].cpu.allowed = "100";
  EXPECT_EQ(node_placements(world).size(), 2U);
}

}  // namespace
}  // namespace shardmark::doctor
