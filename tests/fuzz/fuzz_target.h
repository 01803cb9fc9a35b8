// Shared by the fuzz targets: the rule that every input gives a result or an error of one line, and a
// directory for their files.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/error.h"

namespace shardmark {

// Aborts the program if `action` throws anything but a UsageError of one line that begins with `start`.
template <class Action>
void one_line_or_result(std::string_view start, Action action) {
  std::string broken;
  try {
    action();
  } catch (const UsageError& error) {
    const std::string line = error.what();
    if (line.starts_with(start) && line.find('\n') == std::string::npos) return;
    broken = "not one line that begins with '" + std::string(start) + "': " + line;
  } catch (const std::exception& error) {
    broken = std::string("no UsageError: ") + error.what();
  } catch (...) {
    broken = "an exception of no standard type";
  }
  if (broken.empty()) return;
  std::fprintf(stderr, "%s\n", broken.c_str());
  std::abort();
}

// A directory for this process, in memory if possible.
class FuzzDirectory {
 public:
  FuzzDirectory() {
    std::string name =
        std::filesystem::exists("/dev/shm") ? "/dev/shm/shardmark-fuzz-XXXXXX" : "/tmp/shardmark-fuzz-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~FuzzDirectory() { std::filesystem::remove_all(path_); }
  FuzzDirectory(const FuzzDirectory&) = delete;
  FuzzDirectory& operator=(const FuzzDirectory&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline void write_bytes(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace shardmark
