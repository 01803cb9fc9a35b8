// Wrappers of system calls that turn errors into one-line UsageErrors with the path and the reason.
#include "schema/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>

#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "schema/beside.h"

namespace shardmark {
namespace {

[[noreturn]] void fail(const std::string& what, const std::string& path, int error) {
  std::string advice;
  const std::string directory = std::filesystem::path(path).parent_path().string();
  if (error == ENOENT && !directory.empty() && !file_exists(directory))
    advice = "; make the directory first: mkdir -p " + directory;
  if (error == ENOSPC || error == EDQUOT || error == EFBIG)
    advice = "; what was recorded before is kept: make room";
  throw UsageError("cannot " + what + " " + path + ": " + std::strerror(error) + advice);
}

void check(bool ok, const std::string& what, const std::string& path) {
  if (!ok) fail(what, path, errno);
}

[[noreturn]] void refuse_input(const std::string& path, const std::string& reason) {
  throw UsageError(path + ": cannot be read: " + reason);
}

std::string kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  return S_ISSOCK(mode) ? "a socket" : "a device";
}

struct Place {
  std::string path;
  bool in_place = false;  // written directly: it cannot be replaced by renaming
};

// Where a file is really written. A link is followed, so that the file behind it is replaced and not the
// link. A file is written in place if no temporary file can take its place: a device or a pipe, or an
// existing file in a directory that is not writable.
Place place_of(const std::string& given) {
  if (given.starts_with("/dev/") || given.starts_with("/proc/")) return {given, true};  // also /dev/stdout
  if (file_exists(given) && !std::filesystem::is_regular_file(given)) return {given, true};
  std::string path = follow_links(given);
  const bool in_place = file_exists(path) && ::access(directory_of(path).c_str(), W_OK) != 0;
  return {std::move(path), in_place};
}

[[noreturn]] void refuse(const std::string& path, int error, const std::string& advice) {
  const char* reason = error == ENXIO ? "no process reads this pipe" : std::strerror(error);
  throw UsageError(path + ": cannot be written (" + reason + "); " + advice);
}

// Refuses '-', which some other flags accept for the standard output. Here it would make a file of that name.
void refuse_standard_output(const std::string& given, const std::string& advice) {
  if (given == "-") throw UsageError("-: this is not written to the standard output; " + advice);
}

}  // namespace

std::string directory_of(const std::string& path) {
  const std::string directory = std::filesystem::path(path).parent_path().string();
  return directory.empty() ? "." : directory;
}

bool file_exists(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0;
}

std::string follow_links(const std::string& given) {
  std::string path = given;
  namespace fs = std::filesystem;
  std::error_code ignored;
  for (int hops = 0; hops < 40 && fs::is_symlink(path, ignored); ++hops)
    path = (fs::path(path).parent_path() / fs::read_symlink(path, ignored)).string();
  if (fs::is_symlink(path, ignored)) throw UsageError(given + ": " + std::strerror(ELOOP));
  return path;
}

File open_if_exists(const std::string& path, int flags) {
  File file(::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK));
  check(file || errno == ENOENT || errno == ENOTDIR, "open", path);
  if (!file) return file;
  struct stat info;
  check(::fstat(file.get(), &info) == 0, "inspect", path);
  if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) refuse_input(path, "it is " + kind_of(info.st_mode));
  return file;
}

std::optional<std::ifstream> open_input(const std::string& path, int64_t most_bytes) {
  const File file = open_if_exists(path, O_RDONLY);
  if (!file) return {};
  struct stat info;
  check(::fstat(file.get(), &info) == 0, "inspect", path);
  if (!S_ISREG(info.st_mode)) refuse_input(path, "it is " + kind_of(info.st_mode));
  if (info.st_size > most_bytes)
    refuse_input(path, fmt::format("it has {}, and what is read here at most {}",
                                   format_bytes(static_cast<double>(info.st_size)),
                                   format_bytes(static_cast<double>(most_bytes))));
  // Reopens the file that was just checked, even if its name leads elsewhere by now. Without /proc it is
  // opened by name, if the name still leads to it.
  std::ifstream opened(fmt::format("/proc/self/fd/{}", file.get()), std::ios::binary);
  if (!opened && is_named(file, path)) opened.open(path, std::ios::binary);
  if (!opened) refuse_input(path, std::strerror(errno));
  return opened;
}

std::optional<std::string> read_input(const std::string& path, int64_t most_bytes) {
  auto file = open_input(path, most_bytes);
  if (!file) return {};
  std::string text(std::istreambuf_iterator<char>(*file), {});
  if (file->bad()) refuse_input(path, std::strerror(EIO));
  return text;
}

File open_or_create(const std::string& path, int flags) {
  File file(::open(path.c_str(), flags | O_CREAT | O_CLOEXEC, 0666));
  check(static_cast<bool>(file), "write", path);
  return file;
}

bool is_named(const File& file, const std::string& path) {
  struct stat opened, named;
  check(::fstat(file.get(), &opened) == 0, "inspect", path);
  return ::stat(path.c_str(), &named) == 0 && opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

Lock lock_file(const File& file, const std::string& path) {
  // The kernel drops the lock when the process ends, also by kill -9, so a crash leaves no lock behind. On a
  // file system without locks the caller may go on after a warning: there is no way to find another writer.
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return Lock::held_by_another;
    log_warning(path + " lies on a file system without locks: make sure that no other process writes it");
  }
  // Between open() and flock() the process that held the lock may have renamed or deleted the file. Then the
  // lock is on a file that nobody looks at any more, and the caller opens the new one.
  return is_named(file, path) ? Lock::taken : Lock::replaced;
}

bool read_at(const File& file, const std::string& path, int64_t offset, void* bytes, size_t count) {
  auto* next = static_cast<char*>(bytes);
  while (count > 0) {
    const ssize_t got = ::pread(file.get(), next, count, offset);
    if (got < 0 && errno == EINTR) continue;
    check(got >= 0, "read", path);
    if (got == 0) return false;
    next += got;
    offset += got;
    count -= static_cast<size_t>(got);
  }
  return true;
}

void write_at(const File& file, const std::string& path, int64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(file.get(), bytes.data(), bytes.size(), offset);
    if (put < 0 && errno == EINTR) continue;
    check(put >= 0, "write", path);
    bytes.remove_prefix(static_cast<size_t>(put));
    offset += put;
  }
}

// The new name is an entry of the directory, so the directory must be synced to make it durable.
void rename_file(const std::string& from, const std::string& to) {
  check(::rename(from.c_str(), to.c_str()) == 0, "write", to);
  sync_path(directory_of(to));
}

void remove_file(const std::string& path) {
  check(::unlink(path.c_str()) == 0 || errno == ENOENT, "remove", path);
  sync_path(directory_of(path));
}

void sync_path(const std::string& path) {
  const File file = open_if_exists(path, O_RDONLY);
  check(::fsync(file.get()) == 0 || errno == EINVAL, "write", path);  // EINVAL: not a file that can be synced
}

void require_regular(const std::string& path) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (std::filesystem::is_directory(status)) throw UsageError(path + " is a directory; name a file");
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    throw UsageError(path + " is not a regular file, and nothing else is ever replaced; name another place");
}

void require_writable(const std::string& given, const std::string& advice) {
  refuse_standard_output(given, advice);
  const Place place = place_of(given);
  if (::access(place.in_place ? place.path.c_str() : directory_of(place.path).c_str(), W_OK) != 0)
    refuse(given, errno, advice);
}

void make_directory(const std::string& directory, const std::string& flag) {
  if (directory == "-") throw UsageError(flag + " -: the standard output is no folder; name one");
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error)
    throw UsageError(fmt::format("{}: the directory {} cannot be made ({}); name another place", flag,
                                 directory, error.message()));
}

void require_writable_directory(const std::string& directory, const std::string& flag) {
  make_directory(directory, flag);
  if (::access(directory.c_str(), W_OK | X_OK) != 0)
    throw UsageError(fmt::format("{}: the directory {} cannot be written ({}); name another place", flag,
                                 directory, std::strerror(errno)));
}

void write_whole(const std::string& given, const std::string& advice,
                 const std::function<void(std::ostream&)>& write) {
  refuse_standard_output(given, advice);
  const auto [path, in_place] = place_of(given);
  std::optional<FileBeside> beside;
  if (!in_place && !beside.emplace(path)) refuse(given, errno, advice);
  // A device or pipe is first opened without blocking and held open: opening a pipe that nobody reads would
  // otherwise block forever.
  const File held(in_place ? ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC) : -1);
  if (in_place && !held) refuse(given, errno, advice);
  // The stream opens the temporary file a second time, by its name. The descriptor in FileBeside stays open:
  // it holds the lock, and it is what take_place() syncs.
  errno = 0;
  std::ofstream file(beside ? beside->name() : path, std::ios::binary);
  if (file) write(file);
  file.close();
  if (!file || (beside && !beside->take_place())) refuse(given, errno == 0 ? EIO : errno, advice);
}

void fail_to_write(const std::string& path) { fail("write", path, errno); }

AppendFile::AppendFile(File file, std::string path) : file_(std::move(file)), path_(std::move(path)) {
  size_ = ::lseek(file_.get(), 0, SEEK_END);
  check(size_ >= 0, "open", path_);
}

// size_ grows only after all bytes were written. So if a write fails halfway, the next one begins at the
// same place, and cut() can remove the rest.
void AppendFile::write(std::string_view bytes) {
  write_at(file_, path_, size_, bytes);
  size_ += static_cast<int64_t>(bytes.size());
}

void AppendFile::sync() { check(::fdatasync(file_.get()) == 0, "write", path_); }

void AppendFile::cut(int64_t size) {
  check(::ftruncate(file_.get(), size) == 0, "shorten", path_);
  size_ = size;
}

}  // namespace shardmark
