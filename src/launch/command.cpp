// Decides the numbers of ranks and threads, and the flags of mpirun, srun and flux run.
#include "launch/command.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"

namespace shardmark {
namespace {

constexpr int64_t kBytesOfARank = 1'500'000'000;  // memory of LibTorch and a small model

using Arguments = std::vector<std::string>;

struct RanksOfNode {
  int64_t on_node = 1;  // ranks on a node
  int64_t cores = 1;    // cores of a node
  int64_t cpus = 1;     // CPUs of a rank, as Slurm counts them
};

int64_t default_ranks_per_node(const Machine& machine, int64_t cores) {
  if (machine.num_gpus > 0) return machine.num_gpus;
  return std::clamp<int64_t>(machine.free_bytes / kBytesOfARank, 1, cores);
}

}  // namespace

bool names_hosts(const Arguments& flags) {
  return std::any_of(flags.begin(), flags.end(), [](const std::string& flag) {
    const std::string name = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
    return flag.starts_with('-') && (name.starts_with("host") || name.starts_with("default-hostfile") ||
                                     name.starts_with("machinefile") || name == "H");
  });
}

namespace {

Arguments mpirun(const Machine& machine, const LaunchOptions& options, const LaunchCommand& command,
                 const RanksOfNode& layout) {
  Arguments arguments = {"mpirun"};
  const auto add = [&](const Arguments& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
  };
  if (machine.has_open_mpi) {
    if (machine.is_root) add({"--allow-run-as-root"});
    const bool crowded = layout.on_node > layout.cores;
    Arguments unbound = {"--oversubscribe", "--bind-to", "none"};  // ranks bind themselves, near their GPU
    if (options.sets_yield)
      unbound.insert(unbound.end(), {"--mca", "mpi_yield_when_idle", crowded ? "1" : "0"});
    const bool has_others = command.num_nodes != 1;
    if (command.num_nodes > 1 || (has_others && options.ranks_per_node > 0))
      add({"--map-by", "ppr:" + std::to_string(layout.on_node) + ":node"});
    add(unbound);
    if (has_others) {
      for (const auto& [name, value] : command.environment) add({"-x", name});
      for (const std::string& variable : options.variables) add({"-x", variable});
    }
  }
  add(options.flags);
  add({"-n", std::to_string(command.ranks)});
  return arguments;
}

// Whether a flag of the user leaves the binding to srun: every --cpu-bind but none.
bool srun_binds(const LaunchOptions& options) {
  return std::any_of(options.flags.begin(), options.flags.end(), [](const std::string& flag) {
    return flag.starts_with("--cpu-bind") && !flag.ends_with("none");
  });
}

// One rank per task, unbound: srun does not know which cores are near a GPU, so ranks bind themselves. If one
// task fails, Slurm ends the others, which would otherwise wait for it.
Arguments srun(const LaunchOptions& options, const LaunchCommand& command, const RanksOfNode& layout) {
  Arguments arguments = {"srun",
                         "--mpi=pmix",
                         "--nodes=" + std::to_string(command.num_nodes),
                         "--ntasks=" + std::to_string(command.ranks),
                         "--ntasks-per-node=" + std::to_string(layout.on_node),
                         "--cpus-per-task=" + std::to_string(layout.cpus),
                         "--distribution=block",
                         "--cpu-bind=none",
                         "--kill-on-bad-exit=1"};
  if (layout.on_node > layout.cores) arguments.emplace_back("--overcommit");
  arguments.insert(arguments.end(), options.flags.begin(), options.flags.end());
  return arguments;
}

// The same for Flux: whole nodes, and ranks that bind themselves and see all GPUs of their node, as NCCL has
// to.
Arguments flux_run(const LaunchOptions& options, const LaunchCommand& command) {
  Arguments arguments = {"flux",
                         "run",
                         "--nodes=" + std::to_string(command.num_nodes),
                         "--ntasks=" + std::to_string(command.ranks),
                         "--exclusive",
                         "--setopt=cpu-affinity=off",
                         "--setopt=gpu-affinity=off",
                         "--setopt=exit-on-error"};
  arguments.insert(arguments.end(), options.flags.begin(), options.flags.end());
  return arguments;
}

}  // namespace

// The text is Slurm's: "72(x2),36" means two nodes of 72 CPUs and one of 36. atoll stops at the bracket.
int64_t least_cpus_per_node(const std::string& text) {
  int64_t least = 0;
  for (size_t at = 0; at < text.size(); at = std::min(text.find(',', at), text.size() - 1) + 1) {
    const int64_t cpus = std::atoll(text.c_str() + at);
    if (cpus > 0) least = least == 0 ? cpus : std::min(least, cpus);
  }
  return least;
}

LaunchCommand make_launch_command(const Machine& machine, const Allocation& allocation,
                                  const LaunchOptions& options) {
  RanksOfNode layout;
  const bool is_elsewhere = !allocation.job.empty() && allocation.cpus_here == 0;
  if (is_elsewhere && options.ranks == 0 && options.ranks_per_node == 0)
    throw UsageError(
        "this shell is not on a node of job " + allocation.job +
        ", so its cores and GPUs do not count: give the number of ranks with -n, --ranks-per-node, or "
        "RANKS_PER_NODE in jobs/env.sh");
  const int64_t here = allocation.cpus_here > 0 ? allocation.cpus_here : machine.num_cores;
  const int64_t least = allocation.cpus_per_node > 0 ? allocation.cpus_per_node : here;
  // A job step may have fewer CPUs than its job.
  const int64_t cpus = is_elsewhere ? least : std::min(here, least);
  // Slurm may count hardware threads as CPUs; this is how many of them a core of this node has.
  const int64_t cpus_of_core = is_elsewhere ? 1 : std::max<int64_t>(here / machine.num_cores, 1);
  layout.cores = std::max<int64_t>(cpus / cpus_of_core, 1);
  if (!is_elsewhere) layout.cores = std::min(machine.num_cores, layout.cores);
  const int64_t per_node =
      options.ranks_per_node > 0 ? options.ranks_per_node : default_ranks_per_node(machine, layout.cores);
  LaunchCommand command;
  command.ranks = options.ranks > 0 ? options.ranks : per_node * allocation.num_nodes;
  command.num_nodes = names_hosts(options.flags) ? 0 : std::min(allocation.num_nodes, command.ranks);
  layout.on_node = command.num_nodes == 0 ? std::min(command.ranks, per_node)
                                          : (command.ranks + command.num_nodes - 1) / command.num_nodes;
  layout.cpus = std::max<int64_t>(cpus / layout.on_node, 1);
  const bool is_cpu_only = machine.num_gpus == 0 && !is_elsewhere && !options.on_gpus;
  command.threads = options.threads > 0 ? options.threads : is_cpu_only ? 1 : 0;
  if (command.threads > 0) command.environment = {{"OMP_NUM_THREADS", std::to_string(command.threads)}};
  // Otherwise OpenMP would bind all ranks of a node to the cores that it sees first, and ranks could not bind
  // themselves.
  if (options.pins_threads && !(options.launcher == "srun" && srun_binds(options)))
    command.environment.emplace_back("OMP_PROC_BIND", "false");
  if (options.launcher == "mpirun" && options.is_homeless) command.environment.emplace_back("HOME", "/");
  if (options.launcher == "mpirun")
    command.arguments = mpirun(machine, options, command, layout);
  else if (options.launcher == "srun")
    command.arguments = srun(options, command, layout);
  else if (options.launcher == "flux")
    command.arguments = flux_run(options, command);
  else
    throw UsageError("--launcher " + options.launcher + ": accepted are mpirun, srun, flux");
  command.arguments.insert(command.arguments.end(), options.container.begin(), options.container.end());
  return command;
}

}  // namespace shardmark
