// What commands that run on every rank share: the device of a rank, its threads, and errors printed once.
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

// This rank's device, made current, with the meter installed: the CPU where CUDA shows no GPU, whatever the
// flags say, which the preflight judges. UsageError: more ranks on a node than GPUs. Collective.
at::Device choose_device(const WorldFlags& flags, const MpiSession& session, const HostGroup& world);
// --threads, else OMP_NUM_THREADS, else this rank's share of the node's cores; where it computes on a GPU, a
// few of these. UsageError: far more than it has processors.
void set_threads(const WorldFlags& flags, int local_ranks, at::Device device);
std::string transport_for(const WorldFlags& flags, at::Device device);

// What a rank may hold, set as the meter's limit: `asked` bytes; where that is 0, 0.8 of the node's memory /
// its ranks, or of the GPU's. UsageError: too little for a GPU.
int64_t limit_memory(int64_t asked, at::Device device, int local_ranks);

// All ranks of a job, from MPI's start to its end, and what looks out for the one that stands still: the job
// ends with kTimedOut when nothing moves for the timeout. The first object of a command.
struct Ranks {
  // most_s: with which the watchdog ends the job at the latest, once all ranks have come up.
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

// Runs body on every rank; if any throws, the lowest such rank prints its one line and all leave with the
// same status. Collective; body itself must not communicate.
void together(const HostGroup& world, const std::function<void()>& body);

}  // namespace shardmark
