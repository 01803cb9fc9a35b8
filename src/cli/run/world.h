// What all commands on ranks share: the device and threads of a rank, and errors that are printed once.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/run_flags.h"
#include "comm/host_group.h"
#include "comm/watch/watchdog.h"

namespace shardmark {

// Returns this rank's device, makes it current, and installs the memory meter. It is the CPU if CUDA shows no
// GPU, whatever the flags say; the preflight judges that. Throws UsageError if a node has more ranks than
// GPUs, unless nodes are to be judged: then a rank without a GPU takes the CPU, and the preflight names it.
// Collective.
at::Device choose_device(const WorldFlags& flags, const MpiSession& session, const HostGroup& world,
                         bool judges_nodes = false);
// Sets the number of threads: from --threads, else OMP_NUM_THREADS, else this rank's share of the node's
// cores (if it computes on a GPU, only a few of them). Throws UsageError if there are far more threads than
// processors.
void set_threads(const WorldFlags& flags, int local_ranks, at::Device device);
std::string transport_for(const WorldFlags& flags, at::Device device);

// Sets and returns the memory limit of a rank: `asked` bytes, or if that is 0, 0.8 of the node's memory
// divided by its ranks, or 0.8 of the GPU's. Throws UsageError if the limit is too small for a GPU.
int64_t limit_memory(int64_t asked, at::Device device, int local_ranks);

// All ranks of a job from MPI_Init to MPI_Finalize, with a watchdog: the job ends with kTimedOut if nothing
// moves for the timeout. This must be the first object of a command.
struct Ranks {
  // most_s limits the watchdog's timeout once all ranks have started.
  explicit Ranks(const WorldFlags& flags, double most_s = std::numeric_limits<double>::infinity());
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  Heartbeat& heartbeat() const { return watchdog->heartbeat(); }
  std::unique_ptr<const MpiSession> session;
  std::unique_ptr<const HostGroup> world;
  std::unique_ptr<Watchdog> watchdog;

 private:
  double timeout_s_;
};

// Runs `body` on every rank. If it throws on any, the lowest such rank prints its one line, and all ranks
// leave with the same status. Collective; `body` itself must not communicate.
void together(const HostGroup& world, const std::function<void()>& body);

}  // namespace shardmark
