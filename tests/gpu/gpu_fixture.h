// Shared by all tests on GPUs: a device, communicators over it, and the reason if tests must be skipped.
#pragma once

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include "comm/communicator.h"
#include "device/device.h"
#include "device/meter.h"

namespace shardmark {

// With a different NCCL_HOSTID for each rank, NCCL treats ranks that share a GPU as if they were on different
// nodes, and uses sockets. This tests correctness only; an operation takes milliseconds.
inline bool is_emulated() { return std::getenv("NCCL_HOSTID") != nullptr; }

// The device and the communicators of this rank. They are made only once, because an NCCL communicator takes
// up to a second.
struct GpuRank {
  GpuRank() {
    if (world.max(int64_t{num_gpus() == 0}) != 0)
      missing = "no GPU on this machine";
    else if (!is_emulated() && world.max(int64_t{world.size() > num_gpus()}) != 0)
      missing = "fewer GPUs than ranks";
    if (!missing.empty()) return;
    const int index = is_emulated() ? 0 : world.rank() % num_gpus();
    device = at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(index));
    use_device(device);
    meter::install(index);
    at::set_num_threads(1);
    comm = make_communicator("nccl", world, device);
    alone = comm->split(comm->rank(), 0);
    cpu_comm = make_communicator("pt2pt", world, at::kCPU);
    cpu_alone = make_communicator("pt2pt", mine, at::kCPU);
    if (world.rank() == 0)
      std::cout << "on " << device_name(device) << ", " << world.size() << " rank(s)"
                << (is_emulated() ? ", emulated: they share the GPU" : "") << std::endl;
  }

  HostGroup world = HostGroup::world();
  HostGroup mine = world.split(world.rank(), 0);
  std::string missing;  // why no test can run
  at::Device device{at::kCPU};
  std::unique_ptr<Communicator> comm, alone;          // nccl: all ranks, this rank alone
  std::unique_ptr<Communicator> cpu_comm, cpu_alone;  // pt2pt: all ranks, this rank alone
};

// Creates and destroys the communicators between MPI_Init and MPI_Finalize, which main() calls.
class GpuEnvironment final : public ::testing::Environment {
 public:
  void SetUp() override { rank = std::make_unique<GpuRank>(); }
  void TearDown() override { rank.reset(); }
  inline static std::unique_ptr<GpuRank> rank;
};
inline ::testing::Environment* const kGpuEnvironment =
    ::testing::AddGlobalTestEnvironment(new GpuEnvironment);  // GoogleTest deletes it

class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!rank_.missing.empty()) GTEST_SKIP() << rank_.missing;
    RecordProperty("emulated", is_emulated() ? "yes" : "no");
    use_device(rank_.device);
    use_tf32(false);  // PyTorch allows TF32 for convolutions by default
    at::manual_seed(1);
  }

  GpuRank& rank_ = *GpuEnvironment::rank;
  const HostGroup& world_ = rank_.world;
  const HostGroup& mine_ = rank_.mine;
  at::Device device_ = rank_.device;
  // These are nullptr if the test is skipped.
  Communicator* comm_ = rank_.comm.get();
  Communicator* alone_ = rank_.alone.get();
  Communicator* cpu_comm_ = rank_.cpu_comm.get();
  Communicator* cpu_alone_ = rank_.cpu_alone.get();
};

}  // namespace shardmark
