// Ranks, threads and flags of mpirun and srun.
#include "launch/command.h"

#include <algorithm>

#include "base/error.h"

namespace shardmark {
namespace {

constexpr int64_t kBytesOfARank = 1'500'000'000;  // LibTorch and a small model

using Arguments = std::vector<std::string>;

struct Layout {
  int64_t on_node = 1;  // ranks
  int64_t cores = 1;    // of a node
  int64_t share = 1;    // of a rank, in cores
};

int64_t default_ranks_per_node(const Machine& machine, int64_t cores) {
  if (machine.num_gpus > 0) return machine.num_gpus;
  return std::clamp<int64_t>(machine.free_bytes / kBytesOfARank, 1, cores);
}

// Hosts that mpirun is told by name are several nodes, whatever Slurm says.
bool names_hosts(const Arguments& flags) {
  return std::any_of(flags.begin(), flags.end(),
                     [](const std::string& flag) { return flag.starts_with("--host") || flag == "-H"; });
}

Arguments mpirun(const Machine& machine, const LaunchOptions& options, const LaunchCommand& command,
                 const Layout& layout) {
  Arguments arguments = {"mpirun"};
  const auto add = [&](const Arguments& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
  };
  if (machine.has_open_mpi) {
    if (machine.is_root) add({"--allow-run-as-root"});
    const bool several = command.num_nodes > 1;
    if (several)
      add({"--map-by", "ppr:" + std::to_string(layout.on_node) + ":node", "--oversubscribe", "-x",
           "OMP_NUM_THREADS"});
    if (layout.on_node > layout.cores) {
      if (!several) add({"--oversubscribe"});
      add({"--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"});
    } else if (several) {
      add({"--bind-to", "none"});
    } else if (layout.cores == machine.num_physical) {  // the whole machine is ours
      add({"--map-by", "slot:PE=" + std::to_string(layout.share), "--bind-to", "core"});
    } else {  // a part of it: which cores are ours is the scheduler's business
      add({"--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "0"});
    }
  }
  add(options.flags);
  add({"-n", std::to_string(command.ranks)});
  return arguments;
}

// One rank per task; when one task fails Slurm ends the others too, instead of leaving them waiting.
Arguments srun(const LaunchOptions& options, const LaunchCommand& command, const Layout& layout) {
  Arguments arguments = {"srun",
                         "--mpi=pmix",
                         "--nodes=" + std::to_string(command.num_nodes),
                         "--ntasks=" + std::to_string(command.ranks),
                         "--ntasks-per-node=" + std::to_string(layout.on_node),
                         "--cpus-per-task=" + std::to_string(layout.share),
                         "--distribution=block",
                         "--kill-on-bad-exit=1"};
  if (layout.on_node > layout.cores) arguments.emplace_back("--overcommit");
  arguments.insert(arguments.end(), options.flags.begin(), options.flags.end());
  return arguments;
}

}  // namespace

LaunchCommand make_launch_command(const Machine& machine, const Allocation& allocation,
                                  const LaunchOptions& options) {
  Layout layout;
  layout.cores = machine.num_cores;
  if (allocation.cores_per_node > 0) layout.cores = std::min(layout.cores, allocation.cores_per_node);
  const int64_t per_node =
      options.ranks_per_node > 0 ? options.ranks_per_node : default_ranks_per_node(machine, layout.cores);
  LaunchCommand command;
  command.ranks = options.ranks > 0 ? options.ranks : per_node * allocation.num_nodes;
  command.num_nodes = std::min(allocation.num_nodes, command.ranks);
  layout.on_node = names_hosts(options.flags) ? std::min(command.ranks, per_node)
                                              : (command.ranks + command.num_nodes - 1) / command.num_nodes;
  layout.share = std::max<int64_t>(layout.cores / layout.on_node, 1);
  command.threads = options.threads > 0 ? options.threads : machine.num_gpus > 0 ? layout.share : 1;
  command.environment = {{"OMP_NUM_THREADS", std::to_string(command.threads)}};
  if (options.launcher == "mpirun")
    command.arguments = mpirun(machine, options, command, layout);
  else if (options.launcher == "srun")
    command.arguments = srun(options, command, layout);
  else
    throw UsageError("--launcher " + options.launcher + ": accepted are mpirun, srun");
  command.arguments.insert(command.arguments.end(), options.container.begin(), options.container.end());
  return command;
}

}  // namespace shardmark
