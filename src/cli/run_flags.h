// The flags of `shardmark run`, also for the commands that start it, and the flags that all commands on ranks
// share.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/overrides.h"

namespace shardmark {

struct WorldFlags {
  std::string device = "auto";     // auto, cpu, cuda
  std::string transport = "auto";  // auto, or a name of specs/specs.h
  std::string bind = "auto";       // auto, none
  int threads = 0;                 // per rank; 0: see set_threads
  double timeout_s = 600;          // timeout of the watchdog
};
void add_world_flags(CLI::App& app, WorldFlags& flags);

struct RunFlags {
  bool quiet = false;
  bool check_collectives = false;
  std::string trace;               // directory of traces; empty: none
  bool overwrite = false;          // replace existing traces
  std::string openmetrics;         // file; empty: none
  int64_t memory_limit_bytes = 0;  // per rank; 0: the suite's, or the device's own
  WorldFlags world;
  Overrides overrides;
};
void add_run_flags(CLI::App& app, RunFlags& flags);

// Parses flags that came after `--`, as `shardmark run` will. Throws UsageError for mistakes before anything
// is started.
RunFlags parse_run_flags(const std::vector<std::string>& flags);

// For launch and submit: the message about unknown arguments that are flags of run and belong after `--`,
// such as "--steps belongs to run: shardmark launch quick -- --steps 3". `words` is the command line from the
// command on. Empty if none of them is a flag of run.
std::string belonging_to_run(const std::vector<std::string>& words, const std::vector<std::string>& unknown);

}  // namespace shardmark
