// Tests what a machine with GPUs may lack when it is used for the first time. Ranks never fall back to CPUs
// unless the user asked for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doctor_world.h"

namespace shardmark::doctor {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Returns two nodes whose GPUs are visible to NVML but not to CUDA.
template <class Change>
World without_cuda(Change change) {
  World world = healthy_world();
  for (RankFacts& rank : world) {
    rank.gpu = {};
    rank.gpu.in_node = rank.gpu.on_bus = 8;
    rank.gpu.capability = 90;
    rank.gpu.name_in_node = "NVIDIA H100 80GB HBM3";
    rank.gpu.cuda_error = "cudaErrorNoDevice: no CUDA-capable device is detected";
    change(rank);
  }
  return world;
}

std::string only(const World& world, Severity severity) {
  const Findings findings = examine(world);
  if (findings.size() != 1) return std::to_string(findings.size()) + " findings";
  EXPECT_EQ(to_text(findings.front().severity), std::string(to_text(severity)));
  const std::string text = to_text(findings.front());
  EXPECT_EQ(text.find('\n'), std::string::npos);
  return text;
}

void expect_quiet_on_cpus(World world) {
  for (RankFacts& rank : world) rank.gpus_refused = true;
  EXPECT_TRUE(examine(world).empty()) << to_text(examine(world).front());
}

TEST(DoctorNeeds, ADriverThatIsNewEnough) {
  const World world = without_cuda([](RankFacts& rank) {
    rank.versions.driver = "550.54.15";
    rank.gpu.cuda_error = "cudaErrorInsufficientDriver: CUDA driver version is insufficient for ...";
  });
  EXPECT_THAT(
      only(world, Severity::error),
      HasSubstr("ranks 0-15: 8 GPUs (NVIDIA H100 80GB HBM3) on node1 and node2 cannot be used: the driver "
                "is 550.54.15, CUDA 13.0 needs 580 or newer; install driver 580 or newer"));
  EXPECT_THAT(only(world, Severity::error), HasSubstr("--device cpu"));
  expect_quiet_on_cpus(world);
  World of_older_cuda = world;
  for (RankFacts& rank : of_older_cuda) rank.versions.cuda = "12.8";
  EXPECT_THAT(only(of_older_cuda, Severity::error), HasSubstr("but CUDA shows none")) << "550 is enough";
  World compatible = healthy_world();  // CUDA's compatibility libraries for older drivers
  for (RankFacts& rank : compatible) rank.versions.driver = "535.1";
  EXPECT_TRUE(examine(compatible).empty());
}

TEST(DoctorNeeds, TuringOrNewer) {
  World world = healthy_world();
  for (RankFacts& rank : world) {
    rank.gpu.name = "Tesla V100-SXM2-32GB";
    rank.gpu.capability = 70;
  }
  EXPECT_THAT(only(world, Severity::error),
              HasSubstr("Tesla V100-SXM2-32GB on node1 and node2 has compute capability 7.0; CUDA 13.0 needs "
                        "7.5 or newer, from Turing on; take nodes with newer GPUs"));
  const World old_driver_too = without_cuda([](RankFacts& rank) {
    rank.gpu.capability = 60;
    rank.gpu.name_in_node = "Tesla P100-PCIE-16GB";
    rank.versions.driver = "470.2";
  });
  EXPECT_THAT(only(old_driver_too, Severity::error), HasSubstr("Tesla P100-PCIE-16GB")) << "no driver helps";
  expect_quiet_on_cpus(old_driver_too);
}

TEST(DoctorNeeds, AListOfWhatIsThere) {
  const World none = without_cuda([](RankFacts& rank) { rank.variables["CUDA_VISIBLE_DEVICES"] = ""; });
  EXPECT_THAT(only(none, Severity::error),
              HasSubstr("CUDA_VISIBLE_DEVICES='' names none of the 8 GPUs on node1 and node2; unset"));
  expect_quiet_on_cpus(none);
  const World wrong = without_cuda([](RankFacts& rank) { rank.variables["CUDA_VISIBLE_DEVICES"] = "9,0"; });
  EXPECT_THAT(only(wrong, Severity::error),
              HasSubstr("names a GPU that does not exist ('9'): CUDA shows 0 of 8"));
  World short_of_some = healthy_world();
  for (RankFacts& rank : short_of_some) rank.variables["CUDA_VISIBLE_DEVICES"] = "0,1,2,3,4,5,6,7,GPU-beef";
  EXPECT_THAT(only(short_of_some, Severity::error), HasSubstr("('GPU-beef'): CUDA shows 8 of 8"));
  const World twice = without_cuda([](RankFacts& rank) { rank.variables["CUDA_VISIBLE_DEVICES"] = "1,1"; });
  EXPECT_THAT(only(twice, Severity::error), HasSubstr("names a GPU twice"));
  World slices = healthy_world();
  for (RankFacts& rank : slices)
    rank.variables["CUDA_VISIBLE_DEVICES"] = "MIG-a,MIG-b,MIG-c,MIG-d,MIG-e,MIG-f,MIG-g,MIG-h,MIG-i";
  EXPECT_TRUE(examine(slices).empty()) << "a process gets one of them";
}

TEST(DoctorNeeds, CudaToWork) {
  const World world = without_cuda([](RankFacts&) {});
  EXPECT_THAT(only(world, Severity::error),
              HasSubstr("there are 8 GPUs on node1 and node2, but CUDA shows none to the ranks"));
  expect_quiet_on_cpus(world);
  const World not_ready = without_cuda([](RankFacts& rank) {
    rank.variables["CUDA_VISIBLE_DEVICES"] = "0,1,2,3,4,5,6,7";  // as Slurm sets it
    rank.gpu.cuda_error = "cudaErrorSystemNotReady: system not yet initialized";
  });
  EXPECT_THAT(only(not_ready, Severity::error),
              AllOf(HasSubstr("system not yet initialized"), HasSubstr("nvidia-fabricmanager")));
}

TEST(DoctorNeeds, AnyDriver) {
  World world = healthy_world(/*on_gpus=*/false);
  for (RankFacts& rank : world) rank.gpu.on_bus = 1;
  EXPECT_THAT(only(world, Severity::warning),
              AllOf(HasSubstr("1 NVIDIA GPU on the PCI bus of node1 and node2, but no driver responds"),
                    HasSubstr("install driver 580 or newer"), HasSubstr("modprobe")));
  expect_quiet_on_cpus(world);
  for (RankFacts& rank : world) rank.gpus_wanted = true;
  EXPECT_THAT(only(world, Severity::error), HasSubstr("no driver responds"));
  for (RankFacts& rank : world) {
    rank.gpus_wanted = false;
    rank.gpu.on_bus = 0;
    rank.gpu.screens_on_bus = 1;
  }
  EXPECT_THAT(only(world, Severity::note), HasSubstr("display adapter"));
}

TEST(DoctorNeeds, AGpuWhereOneIsWanted) {
  World world = healthy_world(/*on_gpus=*/false);
  for (RankFacts& rank : world) rank.gpus_wanted = true;
  EXPECT_THAT(only(world, Severity::error),
              HasSubstr("--device cuda, but CUDA shows no GPU on node1 and node2; see nvidia-smi"));
}

}  // namespace
}  // namespace shardmark::doctor
