// The command that starts the ranks: how many, with which launcher and which of its flags. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "launch/machine.h"

namespace shardmark {

// A Slurm job that we are in; else one node, unless the launcher is given hosts by name.
struct Allocation {
  std::string job;  // its id; empty outside Slurm
  int64_t num_nodes = 1;
  // As Slurm counts them: maybe hardware threads.
  int64_t cpus_here = 0;      // of this node; 0: it is none of the job's, a login node
  int64_t cpus_per_node = 0;  // of the node that has least; 0: as this one
};

// Of SLURM_JOB_CPUS_PER_NODE: 36 of "72(x2),36"; 0 of an empty text.
int64_t least_cpus_per_node(const std::string& text);

// Do these flags of mpirun name hosts? Then it knows how many there are, and how many ranks each takes.
bool names_hosts(const std::vector<std::string>& flags);

struct LaunchOptions {
  std::string launcher = "mpirun";          // or srun
  std::vector<std::string> flags = {};      // of the launcher, after ours
  std::vector<std::string> container = {};  // goes before the program: apptainer exec image.sif
  int64_t ranks = 0;                        // 0: ranks per node x nodes
  int64_t ranks_per_node = 0;  // 0: one per GPU; without GPUs one per core, as far as memory goes
  int64_t threads = 0;  // of a rank; 0: on CPUs 1, on GPUs as many as the cores that the rank is bound to
  std::vector<std::string> variables = {};  // of our environment, for the ranks on other nodes
  bool pins_threads = false;                // OMP_PROC_BIND, OMP_PLACES or GOMP_CPU_AFFINITY would
  bool is_homeless = false;  // neither HOME nor an entry in the list of users: Open MPI's mpirun then fails
  bool sets_yield = true;    // false: OMPI_MCA_mpi_yield_when_idle says whether idle ranks yield their core
};

struct LaunchCommand {
  std::vector<std::string> arguments;                            // the launcher, up to the program
  std::vector<std::pair<std::string, std::string>> environment;  // added to ours
  int64_t ranks = 1;
  int64_t num_nodes = 1;  // 0: those that the launcher's flags name
  int64_t threads = 1;    // of a rank; 0: each takes its share of the cores
};

// UsageError: an unknown launcher; a job none of whose nodes is this one, and no number of ranks.
LaunchCommand make_launch_command(const Machine& machine, const Allocation& allocation,
                                  const LaunchOptions& options);

}  // namespace shardmark
