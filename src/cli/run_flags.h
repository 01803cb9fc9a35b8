// The flags of `shardmark run`, also for the commands that start it; and those that all commands on ranks
// share.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/overrides.h"

namespace shardmark {

struct WorldFlags {
  std::string device = "auto";     // auto, cpu, cuda
  std::string transport = "auto";  // auto, mpi, nccl
  std::string bind = "auto";       // auto, none
  int threads = 0;                 // per rank; 0: see set_threads
  double timeout_s = 600;          // of the watchdog
};
void add_world_flags(CLI::App& app, WorldFlags& flags);

struct RunFlags {
  bool quiet = false;
  bool check_collectives = false;
  std::string trace;               // directory; empty: none
  bool overwrite = false;          // traces that are there
  std::string openmetrics;         // file; empty: none
  int64_t memory_limit_bytes = 0;  // of a rank; 0: the suite's, or the device's own
  WorldFlags world;
  Overrides overrides;
};
void add_run_flags(CLI::App& app, RunFlags& flags);

// Flags that came after `--`, as `shardmark run` will read them. UsageError: what is wrong, before anything
// is started.
RunFlags parse_run_flags(const std::vector<std::string>& flags);

// For launch and submit: of arguments that they do not know, those that are flags of run go after `--`.
// words: the command line from the command on. "--steps belongs to run: shardmark launch quick -- --steps 3";
// empty where none of them is run's.
std::string belonging_to_run(const std::vector<std::string>& words, const std::vector<std::string>& unknown);

}  // namespace shardmark
