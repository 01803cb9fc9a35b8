// Runs a sweep that survives crashes: starts the ranks, and starts them again with --resume as long as a
// point, and not the machine, may be the cause.
//
// Note [Rounds]: a rank that is killed, crashes, hangs or runs out of memory ends the whole MPI job. The
// point that was running gets its outcome and reason (by Study::record_crash, or by the watchdog) and is
// tried once more; its second crash is final. If ranks crash before they open the study, no point was
// running. A sweep therefore ends after a finite number of rounds. It ends sooner if no point can be the
// cause: after two rounds in a row that left no new record because ranks were killed or hung, after one such
// round if ranks ended by themselves or the launcher could not start them, or after kMostCrashes rounds
// without a finished point.
#pragma once

#include <string>
#include <vector>

#include "launch/command.h"

namespace shardmark {

struct Sweep {
  LaunchCommand command;
  std::vector<std::string> run;  // the program and its arguments, without the next two
  std::string study;
  bool resume = false, rerun_failed = false;
  // Wait for the lock of an earlier job whose node was lost.
  bool waits_for_lock = false;
  std::string temporary = "/tmp";  // directory of mpirun's session files
  // Time in seconds until the ranks must have opened the study; 0: no limit.
  double start_limit_s = 0;
};

struct SweepEnd {
  int status = 0;  // status of the last round, or of what ended the sweep
  // The signal to this process that ended the sweep; 0: none.
  int stopped_by = 0;
  int64_t num_finished = 0;  // points finished by this sweep
  // Why ranks that were started ended before they opened the study; empty if they opened it.
  std::string refused = {};
};

SweepEnd run_rounds(const Sweep& sweep);

}  // namespace shardmark
