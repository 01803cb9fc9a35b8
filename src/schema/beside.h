// Replaces a file atomically: the new content is written to a temporary file in the same directory, synced,
// and renamed over the old file when it is complete. Readers see the old file or the new one, never a part.
#pragma once

#include <string>

#include "schema/file.h"

namespace shardmark {

// The temporary name for a new version of `path`. It holds the node and the process id, so that no other
// process writes to the same name.
std::string path_beside(const std::string& path);

// Removes temporary files that killed writers left beside `path`. A writer holds a lock (flock) on its file,
// and the kernel drops the lock when the process ends. Process ids are reused, so they are no evidence. Some
// file systems do not share locks between nodes: a file of another node must also be more than a day old.
void remove_abandoned(const std::string& path);

// The temporary file for `path`. The constructor creates it empty and locks it; the destructor deletes it
// unless take_place() has renamed it.
class FileBeside {
 public:
  explicit FileBeside(std::string path);  // not a link; converts to false on error (errno)
  ~FileBeside();
  FileBeside(const FileBeside&) = delete;
  FileBeside& operator=(const FileBeside&) = delete;
  explicit operator bool() const { return static_cast<bool>(file_); }
  const std::string& name() const { return name_; }
  // Renames the file to `path`, with the mode of the file that was there; durably, unless `sync` is false.
  // Returns false on error (errno).
  bool take_place(bool sync = true);

 private:
  std::string path_, name_;
  File file_;
};

}  // namespace shardmark
