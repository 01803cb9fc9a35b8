// A healthy world of invented facts: 16 ranks on 2 nodes, each with 8 GPUs and 2 sockets of 56 cores.
#pragma once

#include <fmt/format.h>

#include "doctor/checks.h"

namespace shardmark::doctor {

inline RankFacts healthy_rank(int64_t rank, bool on_gpu = true) {
  constexpr int64_t kLocal = 8, kCores = 14;
  RankFacts facts;
  const int64_t node = rank / kLocal, local = rank % kLocal, first = local * kCores;
  facts.host = fmt::format("node{}", node + 1);
  facts.machine = fmt::format("kernel-{}", node);
  facts.rank = rank;
  facts.world_ranks = facts.promised_ranks = 16;
  facts.local_rank = local;
  facts.local_ranks = kLocal;
  facts.cpu = {"Xeon",
               fmt::format("{}-{}", first, first + kCores - 1),
               local < 4 ? "0" : "1",
               kCores,
               112,
               2,
               14,
               0,
               "shardmark"};
  facts.versions = {"abc123", "2.11.0", "Open MPI v4.1.4",     "2.28.9", "2.28.9", "13.0",
                    "9.19.0", "13.1.0", on_gpu ? "580.1" : "", "1.10.8", "6.1.0"};
  const int64_t gib = 1 << 30;
  facts.node.memory_bytes = 2048 * gib;
  facts.node.free_bytes = 2000 * gib;
  facts.node.shm_bytes = 1024 * gib;
  facts.node.locked_bytes = INT64_MAX;
  facts.node.open_files = 65536;
  facts.node.infiniband = true;
  if (rank == 0) {
    facts.node.output = "results";
    facts.node.disk_bytes = 100 * gib;
    facts.node.file_system = "nfs4";
    facts.node.locking = "works";
  }
  if (on_gpu) {
    facts.gpu.name = "NVIDIA H100 80GB HBM3";
    facts.gpu.uuid = fmt::format("GPU-{}", rank);
    facts.gpu.pci = fmt::format("0000:{:02x}:00.0", 0x10 + local);
    facts.gpu.numa = local < 4 ? 0 : 1;
    facts.gpu.visible = facts.gpu.in_node = facts.gpu.on_bus = 8;
    facts.gpu.capability = 90;
    facts.gpu.foreign_bytes = 600 << 20;
    facts.gpu.clock_mhz = 345;
    facts.gpu.most_clock_mhz = facts.gpu.set_clock_mhz = 1980;
    facts.gpu.power_cap_w = facts.gpu.default_cap_w = 700;
    facts.gpu.throttle = 0x1;  // the GPU is idle
    facts.gpu.pcie_width = facts.gpu.most_pcie_width = 16;
  }
  return facts;
}

inline World healthy_world(bool on_gpus = true) {
  World world;
  for (int64_t rank = 0; rank < 16; ++rank) world.push_back(healthy_rank(rank, on_gpus));
  return world;
}

}  // namespace shardmark::doctor
