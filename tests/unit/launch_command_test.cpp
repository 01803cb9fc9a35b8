// Tests how many ranks `launch` starts, and with which flags.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "launch/command.h"

namespace shardmark {
namespace {

using testing::HasSubstr;
using testing::Not;

// A machine with 4 cores, no GPU, and memory for 100 ranks.
Machine plain() { return {0, 4, 150'000'000'000, false, true}; }

// The ranks bind themselves and there are enough cores, so they need not yield.
const std::string kUnbound = "--oversubscribe --bind-to none --mca mpi_yield_when_idle 0 ";

std::string line(const Machine& machine, const LaunchOptions& options = {},
                 const Allocation& allocation = {}) {
  std::string text;
  for (const auto& word : make_launch_command(machine, allocation, options).arguments) text += word + " ";
  return text;
}

TEST(LaunchCommand, TakesAllCoresOfAMachine) {
  const LaunchCommand command = make_launch_command(plain(), {}, {});
  EXPECT_EQ(command.ranks, 4);
  EXPECT_EQ(command.threads, 1);
  EXPECT_EQ(command.environment.front(), (std::pair<std::string, std::string>("OMP_NUM_THREADS", "1")));
  EXPECT_EQ(line(plain()), "mpirun " + kUnbound + "-n 4 ") << "also where Slurm counts one slot";
}

TEST(LaunchCommand, ComputesWithOneThreadOnCpus) {
  EXPECT_EQ(make_launch_command(plain(), {}, {.ranks = 2}).threads, 1);
}

TEST(LaunchCommand, OversubscribesYielding) {
  EXPECT_EQ(line(plain(), {.ranks = 5}),
            "mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -n 5 ");
}

TEST(LaunchCommand, LeavesYieldingToTheEnvironment) {
  EXPECT_EQ(line(plain(), {.ranks = 5, .sets_yield = false}), "mpirun --oversubscribe --bind-to none -n 5 ");
}

TEST(LaunchCommand, TakesNoMoreRanksThanMemoryHolds) {
  Machine small = plain();
  small.free_bytes = 3'500'000'000;
  EXPECT_EQ(make_launch_command(small, {}, {}).ranks, 2);
  small.free_bytes = 0;
  EXPECT_EQ(make_launch_command(small, {}, {}).ranks, 1);
}

TEST(LaunchCommand, TakesOneRankPerGpu) {
  Machine gpus = plain();
  gpus.num_gpus = 2;
  const LaunchCommand command = make_launch_command(gpus, {}, {});
  EXPECT_EQ(command.ranks, 2);
  EXPECT_EQ(command.threads, 0) << "as many as the cores near its GPU, which the rank binds itself to";
  EXPECT_TRUE(command.environment.empty());
}

TEST(LaunchCommand, SpreadsOverTheNodesOfAJob) {
  const Allocation job{"7", 3, 4};
  EXPECT_EQ(line(plain(), {.ranks_per_node = 2}, job),
            "mpirun --map-by ppr:2:node " + kUnbound + "-x OMP_NUM_THREADS -n 6 ");
  EXPECT_EQ(line(plain(), {.launcher = "srun", .flags = {"--gpu-bind=none"}, .ranks_per_node = 2}, job),
            "srun --mpi=pmix --nodes=3 --ntasks=6 --ntasks-per-node=2 --cpus-per-task=2 --distribution=block "
            "--cpu-bind=none --kill-on-bad-exit=1 --gpu-bind=none ");
  EXPECT_EQ(make_launch_command(plain(), job, {.ranks = 2}).num_nodes, 2) << "no more nodes than ranks";
}

TEST(LaunchCommand, UsesWholeNodesOfAFluxJob) {
  EXPECT_EQ(line(plain(), {.launcher = "flux", .flags = {"--label-io"}, .ranks_per_node = 2}, {"", 3}),
            "flux run --nodes=3 --ntasks=6 --exclusive --setopt=cpu-affinity=off "
            "--setopt=gpu-affinity=off --setopt=exit-on-error --label-io ");
}

// As the launcher's pod of a job on Kubernetes: it has no GPU, but its ranks have.
TEST(LaunchCommand, GivesRanksOnGpusElsewhereTheirShareOfTheCores) {
  EXPECT_EQ(make_launch_command(plain(), {}, {.flags = {"--hostfile", "h"}, .ranks = 8}).threads, 1);
  EXPECT_EQ(
      make_launch_command(plain(), {}, {.flags = {"--hostfile", "h"}, .ranks = 8, .on_gpus = true}).threads,
      0);
}

TEST(LaunchCommand, StaysInsideSlurmsCores) {
  EXPECT_EQ(make_launch_command(plain(), {"7", 1, 2}, {}).ranks, 2);
  EXPECT_THAT(line(plain(), {.launcher = "srun", .ranks = 4}, {"7", 1, 2}), HasSubstr("--overcommit"));
}

TEST(LaunchCommand, FitsTheSmallestNodeOfAJob) {
  EXPECT_EQ(least_cpus_per_node("72(x2),36,40(x3)"), 36);
  EXPECT_EQ(least_cpus_per_node("8"), 8);
  EXPECT_EQ(least_cpus_per_node(""), 0);
  EXPECT_THAT(line(plain(), {.launcher = "srun", .ranks_per_node = 2}, {"7", 2, 8, 4}),
              HasSubstr("--cpus-per-task=2 "));
  EXPECT_EQ(make_launch_command(plain(), {"7", 2, 8, 4}, {}).ranks, 4) << "two cores with two threads each";
}

// As in srun --pty -c 2 inside a job with 64 processors.
TEST(LaunchCommand, TakesNoMoreThanItsStep) {
  EXPECT_EQ(make_launch_command(plain(), {"7", 1, 2, 64}, {}).ranks, 2);
}

TEST(LaunchCommand, CountsNoLoginNode) {
  EXPECT_THROW(make_launch_command(plain(), {"7", 2, 0, 64}, {}), UsageError);
  EXPECT_EQ(make_launch_command(plain(), {"7", 2, 0, 64}, {.ranks = 6}).ranks, 6);
  EXPECT_THAT(line(plain(), {.launcher = "srun", .ranks_per_node = 8}, {"7", 2, 0, 64}),
              HasSubstr("--ntasks=16 --ntasks-per-node=8 --cpus-per-task=8 "));
  const LaunchCommand command = make_launch_command(plain(), {"7", 2, 0, 64}, {.ranks = 6});
  EXPECT_EQ(command.threads, 0) << "whether its nodes have GPUs is not known here";
  EXPECT_TRUE(command.environment.empty());
  EXPECT_EQ(line(plain(), {.ranks = 6, .variables = {"NCCL_DEBUG"}}, {"7", 2, 0, 64}),
            "mpirun --map-by ppr:3:node " + kUnbound + "-x NCCL_DEBUG -n 6 ");
}

TEST(LaunchCommand, TakesHostsByName) {
  EXPECT_EQ(line(plain(), {.flags = {"--hostfile", "hosts"}, .ranks = 8, .ranks_per_node = 4}),
            "mpirun --map-by ppr:4:node " + kUnbound + "-x OMP_NUM_THREADS --hostfile hosts -n 8 ");
  EXPECT_EQ(line(plain(), {.flags = {"-host", "a,b"}, .ranks = 8, .variables = {"NCCL_DEBUG"}}),
            "mpirun " + kUnbound + "-x OMP_NUM_THREADS -x NCCL_DEBUG -host a,b -n 8 ")
      << "how many go onto a node is for mpirun to say";
  for (const char* flag : {"-H", "--default-hostfile", "-machinefile"})
    EXPECT_EQ(make_launch_command(plain(), {}, {.flags = {flag, "a"}}).num_nodes, 0) << "not known";
}

// The node has 4 cores with 2 hardware threads each.
TEST(LaunchCommand, GivesSlurmItsOwnCpus) {
  EXPECT_THAT(line(plain(), {.launcher = "srun", .ranks_per_node = 2}, {"7", 1, 8}),
              HasSubstr("--cpus-per-task=4 "));
}

TEST(LaunchCommand, KnowsOnlyOpenMpisFlags) {
  Machine other = plain();
  other.has_open_mpi = false;
  EXPECT_EQ(line(other), "mpirun -n 4 ");
  Machine root = plain();
  root.is_root = true;
  EXPECT_THAT(line(root), HasSubstr("--allow-run-as-root"));
  EXPECT_THAT(line(plain()), Not(HasSubstr("root")));
}

// With OMP_PROC_BIND, OpenMP would pin all ranks of a node to the first core.
TEST(LaunchCommand, PinsNoThreadsOfRanksThatBindThemselves) {
  const auto set = [](const LaunchOptions& options) {
    return make_launch_command(plain(), {"7", 2, 4}, options);
  };
  EXPECT_THAT(set({.pins_threads = true}).environment,
              testing::Contains(testing::Pair("OMP_PROC_BIND", "false")));
  EXPECT_THAT(line(plain(), {.pins_threads = true}, {"7", 2, 4}), HasSubstr("-x OMP_PROC_BIND"));
  EXPECT_EQ(set({}).environment.size(), 1u);
  EXPECT_EQ(set({.launcher = "srun", .pins_threads = true}).environment.size(), 2u);
  EXPECT_EQ(set({.launcher = "srun", .flags = {"--cpu-bind=none"}, .pins_threads = true}).environment.size(),
            2u);
  const LaunchCommand bound = set({.launcher = "srun", .flags = {"--cpu-bind=cores"}, .pins_threads = true});
  EXPECT_EQ(bound.environment.size(), 1u) << "srun binds";
  EXPECT_THAT(bound.arguments, testing::IsSupersetOf({"--cpu-bind=none", "--cpu-bind=cores"}))
      << "of two srun takes the last";
}

// A user without a home directory, as in a container. mpirun of Open MPI 4.1 would crash with signal 11.
TEST(LaunchCommand, GivesTheHomelessAHome) {
  const auto environment = [](const LaunchOptions& options) {
    return make_launch_command(plain(), {"7", 2, 4}, options).environment;
  };
  EXPECT_THAT(environment({.is_homeless = true}), testing::Contains(testing::Pair("HOME", "/")));
  EXPECT_EQ(environment({.launcher = "srun", .is_homeless = true}).size(), 1u);
}

TEST(LaunchCommand, PutsTheContainerBeforeTheProgram) {
  EXPECT_EQ(line(plain(), {.container = {"apptainer", "exec", "x.sif"}}),
            "mpirun " + kUnbound + "-n 4 apptainer exec x.sif ");
}

TEST(LaunchCommand, RefusesUnknownLaunchers) {
  EXPECT_THROW(make_launch_command(plain(), {}, {.launcher = "torchrun"}), UsageError);
}

}  // namespace
}  // namespace shardmark
