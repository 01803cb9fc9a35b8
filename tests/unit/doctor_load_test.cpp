// Tests the check of what other processes use of the cores, with texts of /proc/stat and facts of invented
// nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/node.h"
#include "doctor/load.h"
#include "doctor_world.h"

namespace shardmark::doctor {
namespace {

using ::testing::HasSubstr;

// Returns one node with `cores` cores, all of which its ranks may use. The first rank has measured each
// processor.
World node_of(int64_t num_ranks, int64_t cores, int64_t threads, double busy, double stolen = 0,
              bool is_bound = false, bool on_gpu = false) {
  World world;
  for (int64_t rank = 0; rank < num_ranks; ++rank) {
    RankFacts facts = healthy_rank(rank, on_gpu);
    facts.world_ranks = facts.promised_ranks = facts.local_ranks = num_ranks;
    facts.cpu.cores = facts.cpu.node_cores = cores;
    facts.cpu.allowed = "0-" + std::to_string(cores - 1);
    if (is_bound) {
      const int64_t own = cores / num_ranks;
      facts.cpu.cores = own;
      facts.cpu.allowed = std::to_string(rank * own) + "-" + std::to_string((rank + 1) * own - 1);
    }
    facts.cpu.threads = threads;
    facts.host = "node1";
    facts.machine = "kernel";
    facts.local_rank = rank;
    if (rank == 0) facts.load.average = 7.7;
    if (rank == 0)
      for (int64_t processor = 0; processor < cores; ++processor)
        facts.load.processors.push_back({processor, busy, stolen});
    world.push_back(facts);
  }
  return world;
}

// Returns the only finding of this check, or "" if there is none.
std::string found_in(const World& world) {
  Findings findings;
  check_load(world, findings);
  EXPECT_LE(findings.size(), 1U);
  return findings.empty() ? "" : to_text(findings.front());
}

TEST(DoctorLoad, TicksOfAProcessorAreReadByItsNumber) {
  const auto ticks = processor_ticks(
      "cpu  300 0 100 5000 7 0 2 50 0 0\n"
      "cpu0 100 10 50 2000 5 1 2 40 99 0\n"
      "cpu12 1 2 3 4 5 6 7 8\n"
      "cpu13 1 2 3 4 5 6 7\n"
      "intr 5 0 0 0 0 0 0 0 0 0\n"
      "ctxt 99\n");
  ASSERT_EQ(ticks.size(), 2U);
  EXPECT_EQ(ticks.at(0).busy, 100U + 10 + 50 + 1 + 2);
  EXPECT_EQ(ticks.at(0).stolen, 40U);
  EXPECT_EQ(ticks.at(0).all, ticks.at(0).busy + 40 + 2000 + 5);
  EXPECT_EQ(ticks.at(12).all, 36U);
  EXPECT_TRUE(processor_ticks("").empty());
  EXPECT_TRUE(processor_ticks("cpu0 a b c\ncpux 1 2 3 4 5 6 7 8 9\n").size() <= 1);
}

TEST(DoctorLoad, ABusyMachineIsAWarningWithItsNumbers) {
  const World world = node_of(2, 2, 1, 0.8);
  const std::string text = found_in(world);
  EXPECT_THAT(text, HasSubstr("ranks 0-1: other processes use 1.6 of 2 cores (load 7.7): times will be too "
                              "long by an unknown factor"));
  const auto findings = examine(world);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings.front().check, kLoadCheck) << "it comes first";
  EXPECT_EQ(findings.front().severity, Severity::warning);
}

TEST(DoctorLoad, AnIdleMachineIsNotMentioned) {
  EXPECT_EQ(found_in(node_of(2, 2, 1, 0)), "");
  EXPECT_EQ(found_in(node_of(2, 2, 1, 0.04)), "") << "daemons";
  EXPECT_EQ(found_in(node_of(1, 64, 64, 0.001)), "");
}

TEST(DoctorLoad, WhatRanksThemselvesUsedIsNotOthers) {
  World world = node_of(2, 2, 1, 0.5);
  world[0].load.own = world[1].load.own = 0.5;
  EXPECT_EQ(found_in(world), "");
  world[1].load.own = 0;
  EXPECT_THAT(found_in(world), HasSubstr("other processes use 0.5 of 2 cores"));
}

TEST(DoctorLoad, StolenTimeBelongsToOtherVirtualMachines) {
  EXPECT_THAT(found_in(node_of(1, 4, 4, 0, 0.25)), HasSubstr("other virtual machines take 1.0 of 4 cores"));
  EXPECT_THAT(found_in(node_of(1, 4, 4, 0.5, 0.25)),
              HasSubstr("other processes use 2.0 and other virtual machines take 1.0 of 4 cores"));
}

// One bound rank that loses its core makes all other ranks wait, however many cores the node has.
TEST(DoctorLoad, OneDisturbedRankOfManyIsFound) {
  World world = node_of(16, 32, 2, 0, 0, /*is_bound=*/true);
  world[0].load.processors[7].busy = 1;
  const std::string text = found_in(world);
  EXPECT_THAT(text, HasSubstr("rank 3: other processes use 1.0 of 32 cores"));
}

TEST(DoctorLoad, RanksOnGpusHaveCoresToSpare) {
  EXPECT_EQ(found_in(node_of(8, 112, 2, 0.3, 0, /*is_bound=*/true, /*on_gpu=*/true)), "");
  EXPECT_THAT(found_in(node_of(8, 112, 2, 0.95, 0, /*is_bound=*/true, /*on_gpu=*/true)),
              HasSubstr("other processes use 106.4 of 112 cores"));
  EXPECT_THAT(found_in(node_of(8, 112, 2, 0.3, 0, /*is_bound=*/true, /*on_gpu=*/false)),
              HasSubstr("other processes use 33.6 of 112 cores"))
      << "they share the memory's bandwidth";
}

TEST(DoctorLoad, HardwareThreadsAreCalledSo) {
  World world = node_of(1, 4, 2, 0.5);
  world[0].cpu.cores = world[0].cpu.node_cores = 2;
  EXPECT_THAT(found_in(world), HasSubstr("other processes use 2.0 of 4 hardware threads"));
}

// In a container, /proc/stat may lack some or all of the processors, and there may be no load average.
TEST(DoctorLoad, WhatIsNotKnownIsNotSaid) {
  World world = node_of(2, 2, 1, 1);
  world[0].load.average = kUnknown;
  EXPECT_EQ(found_in(world).find("(load"), std::string::npos);
  world[0].load.processors.pop_back();
  EXPECT_EQ(found_in(world), "");
  world[0].load.processors.clear();
  EXPECT_EQ(found_in(world), "");
  EXPECT_TRUE(node_loads(world).empty());
}

// The first rank of each node measures that node.
TEST(DoctorLoad, TheBusiestOfSeveralNodesIsNamed) {
  World world = node_of(2, 4, 2, 0);
  for (const double busy : {0.5, 0.9}) {
    World more = node_of(2, 4, 2, busy);
    for (RankFacts& rank : more) {
      rank.host = busy > 0.6 ? "node3" : "node2";
      rank.machine = "kernel of " + rank.host;
      rank.rank = std::ssize(world);
      world.push_back(rank);
    }
  }
  EXPECT_THAT(found_in(world),
              HasSubstr("ranks 2-5: on 2 nodes, most on node3: other processes use 3.6 of 4 cores"));
  const auto kept = to_json(node_loads(world));
  ASSERT_EQ(kept.size(), 3U);
  EXPECT_EQ(kept[2]["node"], "node3");
  EXPECT_DOUBLE_EQ(kept[2]["others"].get<double>(), 3.6);
  EXPECT_EQ(kept[2]["cores"], 4);
}

}  // namespace
}  // namespace shardmark::doctor
