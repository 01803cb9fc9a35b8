// Provokes every problem that the doctor knows, one at a time, in a world that is otherwise healthy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doctor_world.h"

namespace shardmark::doctor {
namespace {

using ::testing::HasSubstr;

std::string told(const Findings& findings) {
  std::string text;
  for (const Finding& finding : findings)
    text += std::string(to_text(finding.severity)) + ": " + to_text(finding) + "\n";
  return text;
}

// Expects exactly one finding, with this severity, about these ranks, and with its text in one line.
void expect_only(const World& world, Severity severity, const std::string& ranks, const std::string& words) {
  const Findings findings = examine(world);
  ASSERT_EQ(findings.size(), 1U) << told(findings) << "expected: " << words;
  const Finding& finding = findings.front();
  EXPECT_EQ(to_text(finding.severity), std::string(to_text(severity))) << told(findings);
  EXPECT_EQ(ranges_text(finding.ranks), ranks) << told(findings);
  EXPECT_THAT(finding.what, HasSubstr(words));
  EXPECT_FALSE(finding.fix.empty());
  EXPECT_EQ(to_text(finding).find('\n'), std::string::npos);
}

// Returns the healthy world with a change on some ranks.
template <class Change>
World world_with(std::initializer_list<int> ranks, Change change) {
  World world = healthy_world();
  for (int rank : ranks) change(world[static_cast<size_t>(rank)]);
  return world;
}

TEST(DoctorChecks, NothingIsWrongInAHealthyWorld) {
  EXPECT_EQ(told(examine(healthy_world())), "");
  EXPECT_EQ(told(examine(healthy_world(/*on_gpus=*/false))), "");
  RankFacts alone = healthy_rank(0);
  alone.world_ranks = alone.promised_ranks = alone.local_ranks = 1;
  alone.cpu.allowed = "0-111";
  alone.cpu.numa = "0-1";
  alone.cpu.cores = 112;
  EXPECT_EQ(told(examine({alone})), "");
}

TEST(DoctorChecks, FactsSurviveTheGather) {
  RankFacts rank = healthy_rank(5);
  rank.variables["OMPI_MCA_btl"] = "self";
  const nlohmann::json sent = rank;
  const nlohmann::json back = nlohmann::json::parse(sent.dump()).get<RankFacts>();
  EXPECT_EQ(back.dump(), sent.dump());
  EXPECT_EQ(back["gpu"]["pci"], "0000:15:00.0");
}

TEST(DoctorWorld, IsSmallerThanPromised) {
  World world = healthy_world();
  for (RankFacts& rank : world) rank.promised_ranks = 32;
  expect_only(world, Severity::error, "0-15", "started 32 ranks, but MPI sees a world of 16");
}

TEST(DoctorWorld, HasTwoMachinesOfOneName) {
  World world = healthy_world();
  for (RankFacts& rank : world) rank.host = "localhost";
  expect_only(world, Severity::warning, "0-15", "2 machines have the host name localhost");
}

TEST(DoctorWorld, HasContainersForNodes) {
  World world = healthy_world(/*on_gpus=*/false);
  for (RankFacts& rank : world) rank.machine = "one";
  expect_only(world, Severity::note, "0-15", "node1 and node2 are one machine");
}

TEST(DoctorWorld, MpiDoesNotSeeSharedMemory) {
  expect_only(world_with({0, 1, 2, 3, 4, 5, 6, 7}, [](RankFacts& rank) { rank.local_ranks = 1; }),
              Severity::warning, "0-7",
              "on node1 MPI does not see that ranks share memory (it sees 1 on a node)");
}

TEST(DoctorWorld, SharedMemoryIsExcluded) {
  const auto with = [](const char* name, const char* value) {
    return world_with({8, 9}, [=](RankFacts& rank) {
      rank.variables[name] = value;
      if (std::string(name) == "UCX_TLS") rank.variables["OMPI_MCA_pml"] = "ucx";
    });
  };
  expect_only(with("OMPI_MCA_btl", "tcp,self"), Severity::warning, "8-9", "OMPI_MCA_btl=tcp,self");
  expect_only(with("OMPI_MCA_btl", "^vader"), Severity::warning, "8-9", "OMPI_MCA_btl=^vader");
  expect_only(with("UCX_TLS", "rc,self"), Severity::warning, "8-9", "UCX_TLS=rc,self");
  for (const char* fine : {"vader,self", "self,sm,tcp", "^openib", "^tcp,openib"})
    EXPECT_EQ(told(examine(with("OMPI_MCA_btl", fine))), "") << fine;
  for (const char* fine : {"all", "rc,sm", "^tcp"})
    EXPECT_EQ(told(examine(with("UCX_TLS", fine))), "") << fine;
}

TEST(DoctorWorld, IsUneven) {
  World world = healthy_world();
  for (int64_t rank = 16; rank < 20; ++rank) {
    world.push_back(healthy_rank(rank));
    world.back().local_ranks = 4;
  }
  for (RankFacts& rank : world) rank.world_ranks = rank.promised_ranks = 20;
  expect_only(world, Severity::note, "16-19", "4 ranks on node3, 8 on other nodes");
}

TEST(DoctorGpus, AreShared) {
  expect_only(world_with({4, 5}, [](RankFacts& rank) { rank.gpu.uuid = "GPU-4"; }), Severity::error, "4-5",
              "2 ranks use one GPU (0000:14:00.0 of node1)");
  expect_only(world_with({4, 5},
                         [](RankFacts& rank) {
                           rank.gpu.uuid = "GPU-4";
                           rank.variables["NCCL_HOSTID"] = std::to_string(rank.rank);
                         }),
              Severity::warning, "4-5", "by NCCL_HOSTID");
}

TEST(DoctorGpus, AreMixed) {
  const World without = world_with({8, 9, 10, 11, 12, 13, 14, 15}, [](RankFacts& rank) {
    rank.gpu = {};
    rank.gpu.in_node = 0;
  });
  expect_only(without, Severity::error, "8-15", "no GPU on node2, while 8 other ranks have one");
  expect_only(world_with({15}, [](RankFacts& rank) { rank.gpu.name = "NVIDIA A100-SXM4-80GB"; }),
              Severity::warning, "15", "NVIDIA A100-SXM4-80GB on node2, NVIDIA H100 80GB HBM3 elsewhere");
}

TEST(DoctorGpus, AreInvisible) {
  World world = healthy_world();
  for (RankFacts& rank : world) rank.gpu.visible = 1;
  expect_only(world, Severity::warning, "0-15", "each rank sees 1 of 8 GPUs");
}

TEST(DoctorGpus, ReachNoPeers) {
  expect_only(world_with({3, 9}, [](RankFacts& rank) { rank.gpu.unreachable = 4; }), Severity::warning, "3,9",
              "no peer access to up to 4 of 7 others of its node (node1 and node2)");
}

// Each rank runs in its own container, in which NVML also shows only one GPU.
TEST(DoctorGpus, AreHiddenFromTheDriverToo) {
  World world = healthy_world();
  for (RankFacts& rank : world) rank.gpu.visible = rank.gpu.in_node = 1;
  expect_only(world, Severity::warning, "0-15", "each rank sees 1 of 8 GPUs");
}

TEST(DoctorGpus, AreUnlikeOrIll) {
  const auto with = [](auto change) {
    return world_with({3, 9}, [=](RankFacts& rank) { change(rank.gpu); });
  };
  expect_only(with([](GpuFacts& gpu) { gpu.most_clock_mhz = 1755; }), Severity::warning, "3,9",
              "the highest clock (MHz) is 1755 on node1 and node2, 1980 on other GPUs");
  expect_only(with([](GpuFacts& gpu) { gpu.set_clock_mhz = 1200; }), Severity::warning, "3,9",
              "the application clock (MHz) is 1200");
  expect_only(with([](GpuFacts& gpu) { gpu.power_cap_w = gpu.default_cap_w = 500; }), Severity::warning,
              "3,9", "the power cap (W) is 500");
  expect_only(with([](GpuFacts& gpu) { gpu.throttle = 0x40; }), Severity::warning, "3,9",
              "throttled by temperature on node1 and node2, to 345 MHz");
  expect_only(with([](GpuFacts& gpu) { gpu.throttle = 0x80; }), Severity::warning, "3,9",
              "throttled by their hardware");
  expect_only(with([](GpuFacts& gpu) { gpu.pcie_width = 4; }), Severity::warning, "3,9",
              "narrower than those of other GPUs of the same name on node1 and node2, 4 lanes");
  World resting = healthy_world();
  for (RankFacts& rank : resting) rank.gpu.power_cap_w = kUnknown;
  EXPECT_EQ(told(examine(resting)), "") << "nobody tells a cap";
  for (RankFacts& rank : resting) rank.gpu.pcie_width = 8;
  expect_only(resting, Severity::note, "0-15", "fewer lanes than they have on node1 and node2, 8 lanes");
  expect_only(with([](GpuFacts& gpu) { gpu.uncorrected_errors = 2; }), Severity::warning, "3,9",
              "uncorrected memory errors");
  expect_only(with([](GpuFacts& gpu) { gpu.compute_mode = 2; }), Severity::error, "3,9",
              "compute mode prohibited");
  expect_only(with([](GpuFacts& gpu) { gpu.mig = true; }), Severity::note, "3,9", "MIG");
  expect_only(with([](GpuFacts& gpu) { gpu.foreign_bytes = int64_t{40} << 30; }), Severity::warning, "3,9",
              "up to 40.0 GiB");
}

TEST(DoctorGpus, AreCappedAlike) {
  World world = healthy_world();
  for (RankFacts& rank : world) rank.gpu.power_cap_w = 400;
  expect_only(world, Severity::warning, "0-15",
              "power is capped below the default on node1 and node2, at 400 W");
}

TEST(DoctorVersions, Differ) {
  const auto with = [](std::string VersionFacts::*which, const char* version) {
    return world_with({8, 9, 10}, [=](RankFacts& rank) { rank.versions.*which = version; });
  };
  expect_only(with(&VersionFacts::driver, "550.54"), Severity::warning, "8-10",
              "GPU driver 550.54 on node2, 580.1 elsewhere");
  expect_only(with(&VersionFacts::mpi, "Open MPI v5.0.11"), Severity::warning, "8-10",
              "MPI Open MPI v5.0.11 on node2");
  expect_only(with(&VersionFacts::cuda, "12.8"), Severity::warning, "8-10", "CUDA runtime 12.8");
  expect_only(with(&VersionFacts::torch, "2.10.0"), Severity::error, "8-10", "torch 2.10.0 on node2");
  expect_only(with(&VersionFacts::shardmark, "def456"), Severity::error, "8-10",
              "shardmark def456 on node2, abc123 elsewhere");
  expect_only(with(&VersionFacts::kernel, "5.14"), Severity::note, "8-10", "kernel 5.14");
  expect_only(with(&VersionFacts::hdf5, "1.14.0"), Severity::note, "8-10", "HDF5 1.14.0");
}

TEST(DoctorVersions, OfNccl) {
  World world = healthy_world();
  for (RankFacts& rank : world) rank.versions.nccl = "2.18.3";
  expect_only(world, Severity::warning, "0-15",
              "NCCL 2.18.3 is loaded, but shardmark was compiled with 2.28.9");
  for (RankFacts& rank : world) rank.versions.nccl = "2.29.0";
  expect_only(world, Severity::note, "0-15", "NCCL 2.29.0 is loaded, newer than");
  const World mixed = world_with({7}, [](RankFacts& rank) { rank.versions.nccl = "2.18.3"; });
  const Findings findings = examine(mixed);
  ASSERT_EQ(findings.size(), 2U) << told(findings);
  EXPECT_EQ(findings.front().severity, Severity::error);
  EXPECT_THAT(findings.front().what, HasSubstr("NCCL 2.18.3 on node1, 2.28.9 elsewhere"));
}

TEST(DoctorCores, AreRationed) {
  World world = healthy_world(/*on_gpus=*/false);
  for (RankFacts& rank : world) {
    rank.cpu.quota = 8;
    rank.cpu.threads = 1;
  }
  EXPECT_EQ(told(examine(world)), "");
  for (RankFacts& rank : world) rank.cpu.threads = 2;
  expect_only(world, Severity::warning, "0-15",
              "16 threads of the ranks of node1 and node2 share the 8 cores");
}

TEST(DoctorRoom, IsScarce) {
  World world = healthy_world();
  for (RankFacts& rank : world) rank.node.shm_bytes = 64 << 20;
  expect_only(world, Severity::warning, "0-15",
              "64.0 MiB free in /dev/shm of node1 and node2, 1.00 GiB recommended");
  expect_only(world_with({2}, [](RankFacts& rank) { rank.node.limit_bytes = 1 << 30; }), Severity::warning,
              "2", "only 1.00 GiB of memory");
  expect_only(world_with({0}, [](RankFacts& rank) { rank.node.disk_bytes = 1 << 20; }), Severity::warning,
              "0", "1.00 MiB free where studies go (results on node1)");
  expect_only(world_with({4}, [](RankFacts& rank) { rank.node.locked_bytes = 8 << 20; }), Severity::warning,
              "4", "only 8.00 MiB may be locked on node1: InfiniBand");
  expect_only(world_with({4}, [](RankFacts& rank) { rank.node.open_files = 100; }), Severity::warning, "4",
              "only 100 files may be open");
}

// With docker run --shm-size=1g, MPI has already allocated some of the shared memory.
TEST(DoctorRoom, WhatMpiHasTakenOfSharedMemoryIsNotMissing) {
  World world = healthy_world();
  for (RankFacts& rank : world) rank.node.shm_bytes = (1 << 30) - (40 << 20);
  EXPECT_EQ(told(examine(world)), "");
}

TEST(DoctorRoom, CpuRanksNeedLittleSharedMemory) {
  World world = healthy_world(/*on_gpus=*/false);
  for (RankFacts& rank : world) rank.node.shm_bytes = 256 << 20;
  EXPECT_EQ(told(examine(world)), "");
  for (RankFacts& rank : world) rank.node.shm_bytes = 64 << 20;
  expect_only(world, Severity::warning, "0-15",
              "64.0 MiB free in /dev/shm of node1 and node2, 128 MiB recommended");
}

TEST(DoctorRoom, FilesCannotBeLocked) {
  const auto with = [](const char* setting) {
    return world_with({0}, [=](RankFacts& rank) {
      rank.node.locking = "No locks available";
      if (setting != nullptr) rank.variables["HDF5_USE_FILE_LOCKING"] = setting;
    });
  };
  expect_only(with(nullptr), Severity::note, "0",
              "files in results (nfs4) cannot be locked (No locks available): nothing prevents");
  expect_only(with("TRUE"), Severity::error, "0", "HDF5_USE_FILE_LOCKING=TRUE requires locks");
  EXPECT_EQ(told(examine(with("FALSE"))), "");
}

TEST(DoctorText, StaysShortForManyRanks) {
  World world;
  for (int64_t rank = 0; rank < 8000; ++rank) {
    world.push_back(healthy_rank(rank));
    world.back().world_ranks = world.back().promised_ranks = 8000;
    if (rank % 3 == 0) world.back().gpu.throttle = 0x20;
  }
  const Findings findings = examine(world);
  ASSERT_EQ(findings.size(), 1U) << told(findings);
  EXPECT_EQ(findings.front().ranks.size(), 2667U);
  EXPECT_LT(to_text(findings.front()).size(), 250U);
  EXPECT_THAT(to_text(findings.front()), HasSubstr("ranks 0,3,6,9 ... (2667 ranks): GPUs are throttled by "
                                                   "temperature on node1, node2, node3 and 997 more"));
}

TEST(DoctorRanges, BothWays) {
  EXPECT_EQ(ranges_text({0, 1, 2, 3, 8, 10, 11}), "0-3,8,10-11");
  EXPECT_EQ(numbers_from("0-3,8,10-11"), (Numbers{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(numbers_from("5,1,1-2"), (Numbers{1, 2, 5}));
  EXPECT_EQ(ranges_text({}), "");
  EXPECT_TRUE(numbers_from("").empty());
  for (const char* bad : {"a", "1-", "-1", "1;2", "1--2", "3-1", "0-2147483647"})
    EXPECT_THROW(numbers_from(bad), std::runtime_error) << bad;
}

}  // namespace
}  // namespace shardmark::doctor
