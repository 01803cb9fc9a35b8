// Signals to this process that are polled instead of handled, and the orphans of a child.
#pragma once

#include <csignal>

#include "schema/file.h"

namespace shardmark {

// While this object lives, SIGTERM, SIGINT, SIGHUP and SIGUSR1 do not end the process, and orphans of our
// children become our children. A SIGHUP or SIGINT that was ignored stays ignored (nohup, background jobs of
// a shell). There may be only one object at a time.
class Signals {
 public:
  Signals();
  ~Signals();  // drops signals that asked() has not returned
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int descriptor() const { return descriptor_.get(); }  // for poll(); also readable after a child has ended
  int asked();                                          // the first signal that asks us to end; 0: none

 private:
  sigset_t before_{};
  File descriptor_;
  int asked_ = 0;
};

// Kills our children, then their children, which become ours, until none is left or 10 s are over.
void kill_orphans();

}  // namespace shardmark
