// Makes the command that starts the ranks: how many, with which launcher, and with which of its flags. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "launch/machine.h"

namespace shardmark {

// The job of Slurm or Flux in which this process runs; outside of a job, one node (unless the launcher's
// flags name hosts).
struct Allocation {
  std::string job;  // id of the Slurm job; empty elsewhere
  int64_t num_nodes = 1;
  // CPUs of this node as Slurm counts them, which may be hardware threads. 0: the job does not include this
  // node, which is then a login node.
  int64_t cpus_here = 0;
  int64_t cpus_per_node = 0;  // of the node with the fewest; 0: as this node
};

// The smallest number in SLURM_JOB_CPUS_PER_NODE: 36 for "72(x2),36". 0 for empty text.
int64_t least_cpus_per_node(const std::string& text);

// Whether these flags of mpirun name hosts. Then mpirun knows the hosts and how many ranks each takes.
bool names_hosts(const std::vector<std::string>& flags);

struct LaunchOptions {
  std::string launcher = "mpirun";          // mpirun, srun or flux
  std::vector<std::string> flags = {};      // flags of the launcher, after our own
  std::vector<std::string> container = {};  // precedes the program: apptainer exec image.sif
  int64_t ranks = 0;                        // 0: ranks per node x nodes
  // 0: one per GPU. Without GPUs, one per core as far as memory allows.
  int64_t ranks_per_node = 0;
  // Threads of a rank. 0: 1 on CPUs; on GPUs as many as the cores that the rank is bound to.
  int64_t threads = 0;
  // The ranks are told to use GPUs, even if this node has none.
  bool on_gpus = false;
  // Variables of our environment that are passed on to ranks on other nodes.
  std::vector<std::string> variables = {};
  // OMP_PROC_BIND, OMP_PLACES or GOMP_CPU_AFFINITY is set and would bind threads.
  bool pins_threads = false;
  // There is neither HOME nor an entry in the list of users, without which Open MPI's mpirun fails.
  bool is_homeless = false;
  // Whether we decide if idle ranks yield their core. False: the user's OMPI_MCA_mpi_yield_when_idle decides.
  bool sets_yield = true;
};

struct LaunchCommand {
  std::vector<std::string> arguments;  // the launcher and all words before the program
  std::vector<std::pair<std::string, std::string>> environment;  // added to our environment
  int64_t ranks = 1;
  int64_t num_nodes = 1;  // 0: those that the launcher's flags name
  int64_t threads = 1;    // per rank; 0: each takes its share of the cores
};

// Throws UsageError if the launcher is unknown, or if the job does not include this node and no number of
// ranks is given.
LaunchCommand make_launch_command(const Machine& machine, const Allocation& allocation,
                                  const LaunchOptions& options);

}  // namespace shardmark
