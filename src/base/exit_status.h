// The exit statuses of the program and what they mean.
#pragma once

namespace shardmark {

enum ExitStatus : int {
  kDone = 0,
  kWrong = 1,      // something measured is wrong, failed or slower
  kUsage = 2,      // a mistake that the user can fix
  kSystem = 3,     // the system failed
  kUndecided = 4,  // compare: the launches cannot tell
  kTimedOut = 5,   // nothing moved any more, and the watchdog ended the job
  kOutOfTime = 6,  // launch --requeue outside Slurm: points were finished, and the rest needs another job
};

}  // namespace shardmark
