// What commands that run on every rank share: the device of a rank, its threads, and errors told once.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <string>

#include "cli/command.h"
#include "comm/host_group.h"
#include "watch/watchdog.h"

namespace shardmark {

struct WorldFlags {
  std::string device = "auto";     // auto, cpu, cuda
  std::string transport = "auto";  // auto, mpi, nccl
  std::string bind = "auto";       // auto, none
  int threads = 0;                 // per rank; 0: see set_threads
  double timeout_s = 600;          // of the watchdog
  std::string command_line;
};

void add_world_flags(CLI::App& app, WorldFlags& flags);

// This rank's device, made current, with the meter installed. UsageError: more ranks on a node than GPUs.
// Collective.
at::Device choose_device(const WorldFlags& flags, const MpiSession& session, const HostGroup& world);
// --threads, else OMP_NUM_THREADS, else this rank's share of the node's cores.
void set_threads(const WorldFlags& flags, int local_ranks);
std::string transport_for(const WorldFlags& flags, at::Device device);

// Keeps what this rank does, and ends the job with kTimedOut when nothing moves for the timeout. Collective.
std::unique_ptr<Watchdog> watch(const WorldFlags& flags, const HostGroup& world);

// Runs body on every rank; if any throws, the lowest such rank prints its one line and all leave with the
// same status. Collective; body itself must not communicate.
void together(const HostGroup& world, const std::function<void()>& body);

}  // namespace shardmark
