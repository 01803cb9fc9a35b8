// What this process does for some steps, as PyTorch's profiler sees it: operators, GPU kernels and copies,
// and memory, in Chrome's trace format (Perfetto and chrome://tracing show it).
#pragma once

#include <string>

namespace shardmark {

// Records from its construction to stop(); one at a time in a process. Without a GPU: operators and memory.
class Profile {
 public:
  Profile();
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;
  // Ends the recording and writes it; empty if that succeeded, else what went wrong. The device must be idle.
  std::string stop(const std::string& path);

 private:
  bool running_ = true;
};

}  // namespace shardmark
