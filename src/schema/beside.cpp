// Writes a file under a temporary name and renames it when it is complete. A lock on the temporary file tells
// a running writer from one that was killed.
#include "schema/beside.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

#include "base/node.h"

namespace shardmark {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEnd = ".tmp";

// Returns the node's name from a temporary name as path_beside() makes it, "w.safetensors.<node>.<process
// id>.tmp". `first` is the part in front of it, "w.safetensors.".
std::optional<std::string> node_of(const std::string& name, const std::string& first) {
  if (!name.starts_with(first) || !name.ends_with(kEnd)) return {};
  const std::string process = fs::path(name).stem().extension();  // ".<process id>"
  const size_t end = name.size() - std::char_traits<char>::length(kEnd) - process.size();
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  if (end <= first.size() || process.size() < 2 || !std::all_of(process.begin() + 1, process.end(), is_digit))
    return {};
  return name.substr(first.size(), end - first.size());
}

bool is_old(const fs::directory_entry& file) {
  std::error_code none;
  const auto written = file.last_write_time(none);
  return !none && fs::file_time_type::clock::now() - written > std::chrono::days(1);
}

// Copies group and permissions as far as the system allows it: a report page may be shared with a group.
void keep_mode(const std::string& from, const std::string& to) {
  struct stat info;
  if (::stat(from.c_str(), &info) != 0) return;
  [[maybe_unused]] const int ignored = ::chown(to.c_str(), static_cast<uid_t>(-1), info.st_gid);
  ::chmod(to.c_str(), info.st_mode & 07777);
}

}  // namespace

std::string path_beside(const std::string& path) {
  return fmt::format("{}.{}.{}{}", path, host_name(), ::getpid(), kEnd);
}

// A file is abandoned if its lock is free, because a living writer holds it. After the lock was taken, the
// name must still lead to the locked file: meanwhile its writer may have renamed it into place, and another
// writer may have made a new file under that name. O_NOFOLLOW and O_NONBLOCK keep links and pipes of that
// name from being followed or waited for.
void remove_abandoned(const std::string& path) {
  const std::string first = fs::path(path).filename().string() + ".";
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory_of(path), ignored)) {
    const auto node = node_of(entry.path().filename(), first);
    if (!node || !entry.is_regular_file(ignored) || (*node != host_name() && !is_old(entry))) continue;
    const File file(::open(entry.path().c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (file && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0 && is_named(file, entry.path()))
      ::unlink(entry.path().c_str());
  }
}

FileBeside::FileBeside(std::string path) : path_(std::move(path)), name_(path_beside(path_)) {
  remove_abandoned(path_);
  // Between open() and flock() the new file has no lock, so remove_abandoned() in another process may lock
  // and delete it. Therefore the file is made anew until it is locked and still has its name.
  constexpr int kTries = 100;
  for (int tried = 0; tried < kTries; ++tried) {
    file_ = File(::open(name_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!file_ && errno != EEXIST) return;
    // On a file system without locks, remove_abandoned() cannot lock the file either, and leaves it alone.
    const bool is_held = !file_ || (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK);
    if (!is_held && is_named(file_, name_)) return;
    file_.reset();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  errno = EEXIST;
}

FileBeside::~FileBeside() {
  if (file_) ::unlink(name_.c_str());
}

// With `sync`, the content is synced before the rename, and the directory after it. So after a power loss
// the name leads to the old file or to the whole new one.
bool FileBeside::take_place(bool sync) {
  keep_mode(path_, name_);
  if ((sync && ::fsync(file_.get()) != 0) || ::rename(name_.c_str(), path_.c_str()) != 0) return false;
  file_.reset();
  if (sync) sync_path(directory_of(path_));
  return true;
}

}  // namespace shardmark
