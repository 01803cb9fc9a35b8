// A sweep that goes on after any crash: starts the ranks, and starts them again with --resume as long as a
// point, and not the machine, may be the cause.
//
// Note [Rounds]: a rank that is killed, crashes, hangs or runs out of memory ends the whole MPI job. The
// point that was running then gets its outcome and reason (Study::record_crash; the watchdog does it by
// itself) and is tried once more; a second crash is final. Ranks that had not opened the study crashed in
// no point. So a sweep ends after finitely many rounds, and sooner where no point can be blamed: two rounds
// in a row whose ranks were killed and that left no new record (one, where they ended by themselves, or the
// launcher could not start them), or kMostCrashes rounds without a finished point.
#pragma once

#include <string>
#include <vector>

#include "launch/command.h"

namespace shardmark {

struct Sweep {
  LaunchCommand command;
  std::vector<std::string> run;  // the program and its arguments, but for those that follow
  std::string study;
  bool resume = false, rerun_failed = false;
  bool waits_for_lock = false;     // of ranks of an earlier job, whose node was lost
  std::string temporary = "/tmp";  // where mpirun keeps its session files
  double start_limit_s = 0;        // until the ranks have opened the study; 0: none
};

struct SweepEnd {
  int status = 0;            // of the last round, or of what ended the sweep
  int stopped_by = 0;        // the signal to us that ended it; 0: none
  int64_t num_finished = 0;  // points that were finished meanwhile
  std::string refused = {};  // why ranks that could be started ended before they opened the study
};

SweepEnd run_rounds(const Sweep& sweep);

}  // namespace shardmark
