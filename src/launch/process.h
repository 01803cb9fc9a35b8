// Other programs as children of this one: started without a shell, watched, and ended on request.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "launch/signals.h"

namespace shardmark {

using EnvironmentChanges = std::vector<std::pair<std::string, std::string>>;
using LineSink = std::function<void(const std::string& line)>;

// Runs a program to its end and hands on each line of its stdout. Its exit status; 128 + n after signal n;
// 127 when it cannot be started.
int run_process(const std::vector<std::string>& arguments, const EnvironmentChanges& changes,
                const LineSink& on_stdout);

// What a program prints to stdout; empty when it cannot be started, fails or takes 10 s.
std::string output_of(const std::vector<std::string>& arguments);

struct SupervisedEnd {
  int status = 0;        // as run_process()
  int stopped_by = 0;    // the signal to us that made us end it; 0: it ended by itself
  bool gave_up = false;  // we ended it because `patience` was over
};

// What the caller decides while a child runs.
struct Supervision {
  LineSink on_stderr;                       // each line of its stderr
  std::function<void(pid_t)> on_start;      // with its process id
  std::function<bool()> has_lost_patience;  // asked about once a second: true ends it
};

// Runs a launcher with our stdout, its stderr line by line, and no stdin. SIGTERM, SIGINT, SIGHUP and SIGUSR1
// to us end it: SIGTERM to it, after 10 s SIGKILL. Whatever it leaves behind on this machine, its ranks too,
// is killed before this returns.
SupervisedEnd supervise(Signals& signals, const std::vector<std::string>& arguments,
                        const EnvironmentChanges& changes, const Supervision& supervision);

}  // namespace shardmark
