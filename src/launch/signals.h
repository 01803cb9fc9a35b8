// Signals to this process, to be polled, and the processes that a child leaves behind.
#pragma once

#include <csignal>

#include "schema/file.h"

namespace shardmark {

// While it lives, SIGTERM, SIGINT, SIGHUP and SIGUSR1 end nothing by themselves, and orphans of our children
// become ours. A SIGHUP or SIGINT that was ignored stays so (nohup; a shell's background). One at a time.
class Signals {
 public:
  Signals();
  ~Signals();  // what was not asked about is dropped
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int descriptor() const { return descriptor_.get(); }  // to poll; also readable when a child has ended
  int asked();                                          // the first signal that asks us to end; 0: none came

 private:
  sigset_t before_{};
  File descriptor_;
  int asked_ = 0;
};

// Kills our children, then theirs, which are ours by then, until none is left, for at most 10 s.
void kill_orphans();

}  // namespace shardmark
