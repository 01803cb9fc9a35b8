// What jobs share on this machine and a kill -9 may leave behind: segments of shared memory and Open MPI's
// session files. Note [Leftovers]: mpirun removes what it and its ranks share, unless it is killed with them.
// So each launch keeps a mark, a file in /dev/shm whose lock mpirun inherits, which the kernel drops with the
// last of them; the mark says where the session of its mpirun lies. Whoever starts next removes what marks
// with a free lock name: process ids, which are used again, decide nothing.
#pragma once

#include <sys/types.h>

#include <string>

#include "schema/file.h"

namespace shardmark {

constexpr const char* kSharedMemory = "/dev/shm";

// "shardmark-<user id>-": so begins the name of all that we keep in /dev/shm.
std::string shared_name_prefix();

// Removes what is ours in /dev/shm and has a lock that nobody holds, with the sessions that it names.
void remove_leftovers();

// The mark of one launch; nothing where /dev/shm takes none.
class LauncherMark {
 public:
  // temporary: where mpirun keeps its session files.
  explicit LauncherMark(std::string temporary);
  ~LauncherMark();  // with what is left of the last session
  LauncherMark(const LauncherMark&) = delete;
  LauncherMark& operator=(const LauncherMark&) = delete;
  void name(pid_t mpirun);  // that has just been started

 private:
  std::string temporary_, path_;
  File file_;
};

}  // namespace shardmark
