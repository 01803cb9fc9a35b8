// Files that must survive a crash: owners of descriptors, locks, durable appends, renames. Errors are
// UsageErrors of one line with the path and the system's reason, because a full or unwritable disk is the
// user's to fix.
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

std::string directory_of(const std::string& path);  // "." where the path names none
bool file_exists(const std::string& path);
// The file a link leads to, also when it does not exist yet (results/quick.h5 -> quick-003.h5). UsageError: a
// loop.
std::string follow_links(const std::string& given);
// Every file that is handed in is opened by one of these two: a pipe is not waited for, and of a device,
// which may have no end, nothing is read. Empty when there is no such file; throws on any other failure.
// flags: open(2)'s, closed on exec.
File open_if_exists(const std::string& path, int flags);
// To be read from its begin; UsageError: it is no regular file, or larger than that kind of file ever is.
std::optional<std::ifstream> open_input(const std::string& path, int64_t most_bytes);
std::optional<std::string> read_input(const std::string& path, int64_t most_bytes);  // the whole file
inline constexpr int64_t kMostSuiteBytes = 16 << 20, kMostBaselineBytes = 256 << 20,
                         kMostJournalBytes = int64_t{4} << 30, kMostStudyBytes = int64_t{1} << 40;
File open_or_create(const std::string& path, int flags);

bool is_named(const File& file, const std::string& path);  // whether the path leads to the open file
enum class Lock { taken, held_by_another, replaced };
// Locks the open file until it is closed (flock: gone with the process). replaced: `path` names another file
// by now.
Lock lock_file(const File& file, const std::string& path);

// False when the file ends before.
bool read_at(const File& file, const std::string& path, int64_t offset, void* bytes, size_t count);
void write_at(const File& file, const std::string& path, int64_t offset, std::string_view bytes);
void rename_file(const std::string& from, const std::string& to);  // durable when it returns
void remove_file(const std::string& path);                         // durable when it returns; may be absent
void sync_path(const std::string& path);                           // of a file or directory
[[noreturn]] void fail_to_write(const std::string& path);          // UsageError, by errno

// UsageError where something else than a regular file is at `path`, or behind a link there: a device or a
// folder is never replaced.
void require_regular(const std::string& path);

// A file for people, whole or not at all: written beside (schema/beside.h), synced, renamed, so that what was
// there stays when the disk is full. A device, a pipe, and a file in a folder that takes no other are written
// to themselves. The error ends with the advice; require_writable() finds what can be found before.
void require_writable(const std::string& path, const std::string& advice);
// With those above it; nothing where it is there. UsageError that begins with the flag.
void make_directory(const std::string& directory, const std::string& flag);
// The same, and UsageError where it takes no files.
void require_writable_directory(const std::string& directory, const std::string& flag);
void write_whole(const std::string& path, const std::string& advice,
                 const std::function<void(std::ostream&)>& write);

// Grows at its end. What was written before an error stays as it was.
class AppendFile {
 public:
  AppendFile() = default;
  AppendFile(File file, std::string path);  // at the file's end
  void write(std::string_view bytes);       // not durable before sync()
  void sync();
  void cut(int64_t size);  // drops what lies behind
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
