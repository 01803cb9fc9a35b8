// Runs other programs as children: started without a shell, supervised, and ended on request.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "launch/signals.h"

namespace shardmark {

using EnvironmentChanges = std::vector<std::pair<std::string, std::string>>;
using LineSink = std::function<void(const std::string& line)>;

// Runs a program to its end and passes each line of its stdout on. Returns its exit status, 128 + n after
// signal n, or 127 if it cannot be started.
int run_process(const std::vector<std::string>& arguments, const EnvironmentChanges& changes,
                const LineSink& on_stdout);

// Returns what a program prints to stdout; empty if it cannot be started, fails, or takes more than 10 s.
std::string output_of(const std::vector<std::string>& arguments);

struct SupervisedEnd {
  int status = 0;  // as of run_process()
  // The signal to this process because of which we ended the child; 0: it ended by itself.
  int stopped_by = 0;
  bool gave_up = false;  // we ended it because has_lost_patience() was true
};

// What the caller wants to know and decide while a child runs.
struct Supervision {
  LineSink on_stderr;                       // gets each line of its stderr
  std::function<void(pid_t)> on_start;      // gets its process id
  std::function<bool()> has_lost_patience;  // asked about once per second; true ends the child
};

// Runs a launcher with our stdout and no stdin, and passes on its stderr line by line. If this process gets
// SIGTERM, SIGINT, SIGHUP or SIGUSR1, the launcher gets SIGTERM and, after 10 s, SIGKILL. All processes that
// it leaves on this machine, including its ranks, are killed before this returns.
SupervisedEnd supervise(Signals& signals, const std::vector<std::string>& arguments,
                        const EnvironmentChanges& changes, const Supervision& supervision);

}  // namespace shardmark
