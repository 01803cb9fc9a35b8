// RANKS 1 2
// Compares what a rank finds out about its machine with other information of the system, and about a GPU with
// a library that imitates NVML.
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "doctor/checks.h"
#include "doctor/machine/gpu.h"
#include "doctor/machine/host.h"
#include "doctor/machine/node_tests.h"
#include "doctor/machine/pairs.h"
#include "doctor/machine/topology.h"

namespace shardmark::machine {
namespace {

Numbers affinity() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  EXPECT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
  Numbers cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &mask)) cpus.push_back(cpu);
  return cpus;
}

TEST(MachineTopology, AgreesWithTheSystem) {
  const Topology topology;
  EXPECT_EQ(topology.allowed(), affinity());
  std::set<int> cpus;
  for (const doctor::Core& core : topology.cores())
    for (int cpu : core.cpus) EXPECT_TRUE(cpus.insert(cpu).second) << cpu << " is in two cores";
  EXPECT_LE(static_cast<long>(cpus.size()), sysconf(_SC_NPROCESSORS_CONF));
  EXPECT_GE(topology.num_cores(topology.allowed()), 1);
  EXPECT_LE(static_cast<int>(topology.numa_of(topology.allowed()).size()), topology.num_numa());
}

TEST(MachineTopology, BindsThreadsThatAreAndThatWillBe) {
  const Topology topology;
  const Numbers before = affinity();
  const Numbers one = {before.back()};
  std::atomic<bool> bound = false;
  Numbers of_thread;
  std::thread older([&] {
    while (!bound) std::this_thread::yield();
    of_thread = affinity();
  });
  EXPECT_TRUE(topology.bind(one));
  bound = true;
  older.join();
  EXPECT_EQ(affinity(), one);
  EXPECT_EQ(of_thread, one);
  std::thread([&] { of_thread = affinity(); }).join();
  EXPECT_EQ(of_thread, one);
  EXPECT_TRUE(topology.bind(before));
  EXPECT_EQ(affinity(), before);
}

TEST(MachineGpu, IsAsNvmlSays) {
  doctor::GpuFacts gpu;
  gpu.pci = "0000:17:00.0";
  EXPECT_EQ(add_nvml(gpu, FAKE_NVML), "580.95.05");
  EXPECT_EQ(gpu.in_node, 8);
  EXPECT_EQ(gpu.clock_mhz, 1230);
  EXPECT_EQ(gpu.most_clock_mhz, 1980);
  EXPECT_EQ(gpu.set_clock_mhz, doctor::kUnknown);  // the library lacks this function
  EXPECT_EQ(gpu.power_cap_w, 500);
  EXPECT_EQ(gpu.default_cap_w, 700);
  EXPECT_EQ(gpu.throttle, 0x40);
  EXPECT_EQ(gpu.pcie_width, 8);
  EXPECT_EQ(gpu.most_pcie_width, 16);
  EXPECT_FALSE(gpu.mig);
  EXPECT_EQ(gpu.foreign_bytes, int64_t{3} << 30);
}

TEST(MachineGpu, StaysUnknownWhereNobodyAnswers) {
  doctor::GpuFacts gpu, none;
  gpu.pci = none.pci = "0000:99:00.0";
  EXPECT_EQ(add_nvml(gpu, "no-such-library.so"), "");
  EXPECT_EQ(nlohmann::json(gpu), nlohmann::json(none));
  EXPECT_EQ(add_nvml(gpu, FAKE_NVML), "580.95.05");
  EXPECT_EQ(gpu.in_node, 8);
  EXPECT_EQ(gpu.power_cap_w, doctor::kUnknown);  // no such GPU
}

// Without CUDA, for example because the driver is too old, the GPUs of the node are still found.
TEST(MachineGpu, IsSeenWithoutCuda) {
  doctor::GpuFacts gpu;
  EXPECT_EQ(add_nvml(gpu, FAKE_NVML), "580.95.05");
  EXPECT_EQ(gpu.in_node, 8);
  EXPECT_EQ(gpu.capability, 80);  // that of the oldest GPU
  EXPECT_EQ(gpu.name_in_node, "NVIDIA A100-PCIE-40GB");
  EXPECT_EQ(gpu.name, "") << "this rank uses none";
  const doctor::GpuFacts here = gpu_facts(at::kCPU);
  EXPECT_EQ(here.cuda_error.empty(), here.visible > 0) << here.cuda_error;
}

TEST(MachineGpu, IsCountedWithoutADriver) {
  const std::string devices = "/tmp/shardmark-pci-" + std::to_string(::getpid());
  const auto device = [&](const std::string& name, const std::string& vendor, const std::string& kind) {
    std::filesystem::create_directories(devices + "/" + name);
    std::ofstream(devices + "/" + name + "/vendor") << vendor << "\n";
    std::ofstream(devices + "/" + name + "/class") << kind << "\n";
  };
  device("0000:17:00.0", "0x10de", "0x030200");
  device("0000:18:00.0", "0x10de", "0x030200");
  device("0000:1a:00.0", "0x10de", "0x030000");  // one with a display
  device("0000:18:00.1", "0x10de", "0x040300");  // the audio function of a GPU
  device("0000:19:00.0", "0x15b3", "0x020700");
  EXPECT_EQ(gpus_on_bus(devices).computing, 2);
  EXPECT_EQ(gpus_on_bus(devices).screens, 1);
  EXPECT_EQ(gpus_on_bus(devices + "/none").computing, 0);
  std::filesystem::remove_all(devices);
}

TEST(MachineHost, AgreesWithTheSystem) {
  const std::string directory = ::testing::TempDir();
  const auto facts = host_facts(directory);
  EXPECT_NEAR(static_cast<double>(facts.memory_bytes),
              static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE)),
              1e6);
  EXPECT_LE(facts.free_bytes, facts.memory_bytes);
  EXPECT_GT(facts.disk_bytes, 0);
  EXPECT_EQ(facts.locking, "works");
  EXPECT_FALSE(facts.file_system.empty());
  EXPECT_EQ(facts.open_files, sysconf(_SC_OPEN_MAX));
  EXPECT_EQ(kernel_id().size(), 36U);
  EXPECT_EQ(host_facts("").disk_bytes, doctor::kUnknown);
  // It could not be tested. The study itself will report the error.
  EXPECT_EQ(host_facts(directory + "/nowhere").locking, "");
}

TEST(MachinePairs, AreMeasured) {
  const HostGroup world = HostGroup::world();
  PairOptions options;
  options.transport = "pt2pt";
  options.budget_s = 1;
  HeartbeatPage page{};
  Heartbeat heartbeat(page);
  options.heartbeat = &heartbeat;
  const auto test = measure_pairs(world, options);
  EXPECT_EQ(test.across.num_rounds, 0);
  EXPECT_EQ(test.in_nodes.num_rounds, world.size() - 1);
  if (world.size() > 1) {
    EXPECT_EQ(page.completed.name.get(), "send_recv");
  }
  if (world.rank() != 0) return;
  ASSERT_EQ(test.in_nodes.groups.size(), 1U);
  const auto& node = test.in_nodes.groups.front();
  EXPECT_EQ(static_cast<int>(node.ranks.size()), world.size());
  if (world.size() < 2) return;
  EXPECT_GT(node.bytes.at(0, 1), 0);
  EXPECT_GT(node.messages.at(0, 1), 0);
}

TEST(MachineNodeTests, MeasureEveryRank) {
  const HostGroup world = HostGroup::world();
  NodeTestOptions options;
  options.transport = "pt2pt";
  options.budget_s = 0.5;
  options.storage_bytes = 8 << 20;
  const NodeTests tests = test_nodes(world, options);
  if (world.rank() != 0) {
    EXPECT_TRUE(tests.by_rank.empty());
    return;
  }
  EXPECT_TRUE(tests.found.empty());
  for (const auto key : {node_tests::kProductS, node_tests::kCopied}) {
    ASSERT_NE(tests.values(key), nullptr) << key;
    ASSERT_EQ(std::ssize(*tests.values(key)), world.size()) << key;
    for (const double value : *tests.values(key)) EXPECT_GT(value, 0) << key;
  }
  EXPECT_EQ(*tests.values(node_tests::kWrongProduct), std::vector<double>(static_cast<size_t>(world.size())));
  EXPECT_TRUE(tests.damage.empty());
  EXPECT_GT(tests.values(node_tests::kWritten)->front(), 0);
  EXPECT_GT(tests.values(node_tests::kRead)->front(), 0);
  if (world.size() > 1) {
    EXPECT_TRUE(std::isnan(tests.values(node_tests::kWritten)->back())) << "one file for each node";
    for (const double rate : *tests.values(node_tests::kInNode)) EXPECT_GT(rate, 0);
  }
  EXPECT_EQ(tests.values(node_tests::kBetweenNodes), nullptr) << "there is one node";
}

TEST(MachineNodeTests, StorageThatFailsSaysWhy) {
  int parts = 0;
  const auto count = [&] { ++parts; };
  EXPECT_EQ(
      write_and_read("/nowhere", 1 << 20, count).trouble,
      "cannot make a file of 1 MiB in /nowhere: No such file or directory; make room or mend it, or test "
      "another folder: --set accept.folder=PATH");
  EXPECT_EQ(parts, 0);
  const StorageTest works = write_and_read(std::filesystem::temp_directory_path(), 3 << 20, count);
  EXPECT_EQ(works.trouble, "");
  EXPECT_GT(works.write_rate, 0);
  EXPECT_EQ(parts, 6) << "written and read";
}

TEST(MachineNodeTests, OnePauseDoesNotMakeASmallFileSlow) {
  int parts = 0;
  const auto pause_once = [&] {
    if (parts++ == 0) std::this_thread::sleep_for(std::chrono::milliseconds(200));
  };
  const StorageTest test = test_storage("/dev/shm", 1 << 20, pause_once);
  EXPECT_EQ(test.trouble, "");
  EXPECT_GT(test.write_rate, (1 << 20) / 0.2) << "the median of " << parts / 2 << " files";
  EXPECT_NE(test_storage("/nowhere", 1 << 20, pause_once).trouble, "");
}

TEST(MachineNodeTests, ProductsHaveTheSameBitsEverywhere) {
  const ProductTest one = multiply(at::kCPU, 256), again = multiply(at::kCPU, 256);
  EXPECT_EQ(one.checksum, again.checksum);
  EXPECT_NE(one.checksum, 0);
  EXPECT_EQ(HostGroup::world().max(one.checksum), -HostGroup::world().max(-one.checksum));
  EXPECT_NE(multiply(at::kCPU, 128).checksum, one.checksum);
}

TEST(MachineNodeTests, AProductIsWrongAgainstMostOrAgainstItself) {
  EXPECT_EQ(wrong_products({7, 7, 7}), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(wrong_products({7, 5, 7}), (std::vector<double>{0, 1, 0}));
  EXPECT_EQ(wrong_products({0, 7}), (std::vector<double>{1, 0})) << "the first contradicts itself";
  EXPECT_EQ(wrong_products({0}), (std::vector<double>{1}));
  for (const double one : wrong_products({5, 7})) EXPECT_TRUE(std::isnan(one)) << "nobody has a majority";
  EXPECT_TRUE(wrong_products({}).empty());
}

TEST(MachineExchange, IsLedByOneRank) {
  const HostGroup world = HostGroup::world();
  HeartbeatPage page{};
  Heartbeat heartbeat(page);
  const int last = world.size() - 1;
  int led = 0;
  lead_exchanges(world, {"pt2pt", at::kCPU, &heartbeat}, [&](const doctor::Exchange& exchange) {
    ++led;
    doctor::Receivers to(static_cast<size_t>(world.size()), doctor::kRests);
    to.front() = last;
    to.back() = 0;
    for (const auto& own : exchange(to, 3)) {
      ASSERT_EQ(own.size(), 3U);
      for (double seconds : own) EXPECT_GT(seconds, 0);
    }
    for (const auto& own : exchange(doctor::Receivers(to.size(), doctor::kRests), 1))
      EXPECT_TRUE(std::isnan(own.front())) << "rests";
  });
  EXPECT_EQ(led, world.rank() == 0 ? 1 : 0);
  EXPECT_EQ(page.completed.name.get(), "send_recv");
}

}  // namespace
}  // namespace shardmark::machine
