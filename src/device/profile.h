// A trace of some steps of this process as PyTorch's profiler records it: operators, GPU kernels and copies,
// and memory, in Chrome's trace format (Perfetto and chrome://tracing show it).
#pragma once

#include <string>

namespace shardmark {

// Records from construction to stop(). There can be one at a time in a process. Without a GPU it records
// operators and memory.
class Profile {
 public:
  Profile();
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;
  // Ends the recording and writes it. Returns an empty text, or what went wrong. The device must be idle.
  std::string stop(const std::string& path);

 private:
  bool running_ = true;
};

}  // namespace shardmark
