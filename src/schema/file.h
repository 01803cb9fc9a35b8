// Files that must survive a crash: descriptors that close themselves, locks, durable appends and renames.
// Errors are UsageErrors of one line with the path and the system's reason, because the user has to fix a
// full or read-only disk.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/handle.h"

namespace shardmark {

struct CloseFile {
  void operator()(int descriptor) const noexcept { ::close(descriptor); }
};

class File : public Handle<int, CloseFile> {
 public:
  explicit File(int descriptor = -1) : Handle(descriptor, -1) {}
};

std::string directory_of(const std::string& path);  // "." if the path has no directory
bool file_exists(const std::string& path);
// Returns the file that a link leads to, even if that does not exist yet (results/quick.h5 -> quick-003.h5).
// Throws UsageError if links form a loop.
std::string follow_links(const std::string& given);
// All input files are opened by open_if_exists() or open_input(). They do not wait for the writer of a pipe,
// and refuse devices, which may be endless. The result is empty if there is no such file; any other failure
// throws. `flags` are those of open(2); the file is closed on exec.
File open_if_exists(const std::string& path, int flags);
// Opens a file for reading from its start. Throws UsageError if it is not a regular file, or has more than
// `most_bytes`, a bound that no valid file of its kind exceeds.
std::optional<std::ifstream> open_input(const std::string& path, int64_t most_bytes);
std::optional<std::string> read_input(const std::string& path, int64_t most_bytes);  // all of it
inline constexpr int64_t kMostSuiteBytes = 16 << 20, kMostBaselineBytes = 256 << 20,
                         kMostJournalBytes = int64_t{4} << 30, kMostStudyBytes = int64_t{1} << 40;
File open_or_create(const std::string& path, int flags);

bool is_named(const File& file, const std::string& path);  // whether the path leads to the open file
enum class Lock { taken, held_by_another, replaced };
// Locks the open file until it is closed. The lock (flock) also ends with the process. `replaced` means that
// `path` leads to another file by now.
Lock lock_file(const File& file, const std::string& path);

// Returns false if the file ends before `count` bytes are read.
bool read_at(const File& file, const std::string& path, int64_t offset, void* bytes, size_t count);
void write_at(const File& file, const std::string& path, int64_t offset, std::string_view bytes);
void rename_file(const std::string& from, const std::string& to);  // durable when it returns
void remove_file(const std::string& path);                 // durable when it returns; the file may be missing
void sync_path(const std::string& path);                   // syncs a file or directory
[[noreturn]] void fail_to_write(const std::string& path);  // throws UsageError with the reason in errno

// Throws UsageError if `path`, or the link there, leads to something other than a regular file: a device or a
// directory is never replaced.
void require_regular(const std::string& path);

// write_whole() writes a file completely or not at all: to a temporary name (schema/beside.h), synced, then
// renamed, so that the former file stays if the disk is full. Devices, pipes, and files in a directory that
// is not writable are written in place. Errors end with `advice`. require_writable() finds, before a long
// run, the errors that can be found early.
void require_writable(const std::string& path, const std::string& advice);
// Makes the directory and its parents if they are missing. Errors are UsageErrors that begin with the flag.
void make_directory(const std::string& directory, const std::string& flag);
// The same, and throws UsageError if no files can be made in the directory.
void require_writable_directory(const std::string& directory, const std::string& flag);
void write_whole(const std::string& path, const std::string& advice,
                 const std::function<void(std::ostream&)>& write);

// A file that is only appended to. If a write fails, everything before it is unchanged.
class AppendFile {
 public:
  AppendFile() = default;
  AppendFile(File file, std::string path);  // appends at the end of the file
  void write(std::string_view bytes);       // durable after sync()
  void sync();
  void cut(int64_t size);  // truncates the file to `size` bytes
  int64_t size() const { return size_; }
  const File& file() const { return file_; }
  const std::string& path() const { return path_; }
  void renamed(std::string path) { path_ = std::move(path); }

 private:
  File file_;
  std::string path_;
  int64_t size_ = 0;
};

}  // namespace shardmark
