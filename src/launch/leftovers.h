// Removes what a job that was killed with SIGKILL left on this machine: shared memory segments and session
// files of Open MPI. Note [Leftovers]: mpirun removes these itself, unless it is killed together with its
// ranks. So each launch keeps a mark, a locked file in /dev/shm that says where the session of its mpirun is.
// mpirun inherits the lock, and the kernel drops it when the last of these processes ends. The next launch
// removes everything that is named by a mark whose lock is free. Process ids are reused, so they are no
// evidence.
#pragma once

#include <sys/types.h>

#include <string>

#include "schema/file.h"

namespace shardmark {

constexpr const char* kSharedMemory = "/dev/shm";

// "shardmark-<user id>-", with which the names of all our files in /dev/shm begin.
std::string shared_name_prefix();

// Removes our files in /dev/shm whose lock is free, and the sessions that they name.
void remove_leftovers();

// The mark of one launch. There is none if /dev/shm cannot be written.
class LauncherMark {
 public:
  // `temporary` is the directory in which mpirun keeps its session files.
  explicit LauncherMark(std::string temporary);
  ~LauncherMark();  // also removes what is left of the last session
  LauncherMark(const LauncherMark&) = delete;
  LauncherMark& operator=(const LauncherMark&) = delete;
  void name(pid_t mpirun);  // writes the process id of the mpirun that was just started

 private:
  std::string temporary_, path_;
  File file_;
};

}  // namespace shardmark
