// A file that is written beside the one whose place it takes when it is whole.
#pragma once

#include <string>

#include "schema/file.h"

namespace shardmark {

// The name under which a file is written that is to take the place of `path`; no other process writes it.
std::string path_beside(const std::string& path);

// Removes what writers that were killed left beside `path`. They held a lock on it (flock), which the kernel
// drops with them: process ids, which are used again, decide nothing. Some file systems keep the locks of a
// node to itself: what another node writes has to be a day old, too.
void remove_abandoned(const std::string& path);

// The file of that name: there, empty and locked, from here on; gone with this object unless it took its
// place.
class FileBeside {
 public:
  explicit FileBeside(std::string path);  // no link. false: the system refuses, by errno
  ~FileBeside();
  FileBeside(const FileBeside&) = delete;
  FileBeside& operator=(const FileBeside&) = delete;
  explicit operator bool() const { return static_cast<bool>(file_); }
  const std::string& name() const { return name_; }
  bool take_place();  // durable, with the former file's mode. false: the system refuses, by errno

 private:
  std::string path_, name_;
  File file_;
};

}  // namespace shardmark
