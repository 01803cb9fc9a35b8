// Removes marks and the Open MPI sessions that they name. leftovers.h explains why: Note [Leftovers].
#include "launch/leftovers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <charconv>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

namespace shardmark {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFirstLine = "shardmark: a session of mpirun";

// Whether the path still leads to the open file, and the file is ours. /dev/shm is writable for everyone,
// and another launch may have removed the file since it was opened.
bool names_it(const std::string& path, const File& file) {
  struct stat opened, named;
  return ::fstat(file.get(), &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino && opened.st_uid == ::geteuid();
}

// The number of the job family. Open MPI begins the file contact.txt of a session with it:
// "935133184.0;tcp://...".
std::optional<uint32_t> family_of(const fs::path& session) {
  std::ifstream contact(session / "contact.txt");
  uint32_t name = 0;
  if (!(contact >> name)) return {};
  return name >> 16U;
}

// Whether a file is a shared memory segment of this job family. Its name is "vader_segment.<node>.<user
// id>.<job in hexadecimal>.<rank>", and the upper half of the job is the family.
bool is_segment_of(const std::string& name, uint32_t family) {
  const std::string user = fmt::format(".{}.", ::geteuid());
  const size_t rank = name.rfind('.'), at = name.rfind(user, rank);
  if (!name.starts_with("vader_segment.") || at == std::string::npos || at + user.size() > rank) return false;
  uint32_t job = 0;
  const char* const end = name.data() + rank;
  return std::from_chars(name.data() + at + user.size(), end, job, 16).ptr == end && job >> 16U == family;
}

void remove_session(const fs::path& session) {
  std::error_code ignored;
  if (const auto family = family_of(session))
    for (const auto& entry : fs::directory_iterator(kSharedMemory, ignored))
      if (is_segment_of(entry.path().filename(), *family)) fs::remove(entry.path(), ignored);
  fs::remove_all(session, ignored);
}

// Whether a folder is our own, so that nobody else can replace what is in it.
bool is_own_folder(const fs::path& path) {
  struct stat info;
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid();
}

// Open MPI keeps a session in <temporary>/ompi.<node>.<user id>/pid.<process id of mpirun>.
void remove_session_of(const std::string& temporary, pid_t mpirun) {
  const std::string user = fmt::format(".{}", ::geteuid());
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(temporary, ignored)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("ompi.") && name.ends_with(user) && is_own_folder(entry.path()))
      remove_session(entry.path() / fmt::format("pid.{}", mpirun));
  }
}

// Whether a process runs. A zombie, which has ended but was not waited for, has no command line.
bool runs(pid_t pid) {
  return ::kill(pid, 0) == 0 && std::ifstream(fmt::format("/proc/{}/cmdline", pid)).peek() != EOF;
}

// Removes the session that a mark names. Returns false if another mpirun, to which the system gave the same
// process id, may be using it.
bool remove_what_it_names(const std::string& path) {
  std::ifstream mark(path);
  std::string first, temporary;
  pid_t mpirun = 0;
  if (!std::getline(mark, first) || first != kFirstLine || !std::getline(mark, temporary) ||
      !(mark >> mpirun))
    return true;
  if (runs(mpirun)) return false;
  remove_session_of(temporary, mpirun);
  return true;
}

}  // namespace

std::string shared_name_prefix() { return fmt::format("shardmark-{}-", ::geteuid()); }

void remove_leftovers() {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(kSharedMemory, ignored)) {
    const std::string path = entry.path();
    if (!entry.path().filename().string().starts_with(shared_name_prefix())) continue;
    const File file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0 || !names_it(path, file)) continue;
    if (remove_what_it_names(path)) ::unlink(path.c_str());
  }
}

LauncherMark::LauncherMark(std::string temporary) : temporary_(std::move(temporary)) {
  for (;;) {
    std::string path = fmt::format("{}/{}XXXXXX", kSharedMemory, shared_name_prefix());
    file_ = File(::mkstemp(path.data()));  // stays open in our children, who inherit the lock
    if (!file_) return;
    if (::flock(file_.get(), LOCK_EX) == 0 && !names_it(path, file_))
      continue;  // another launch removed it as a leftover before it was locked
    path_ = path;
    return;
  }
}

LauncherMark::~LauncherMark() {
  if (!file_) return;
  remove_what_it_names(path_);
  ::unlink(path_.c_str());
}

void LauncherMark::name(pid_t mpirun) {
  if (!file_) return;
  remove_what_it_names(path_);  // the session of the mpirun before
  std::ofstream(path_) << kFirstLine << '\n' << temporary_ << '\n' << mpirun << '\n';
}

}  // namespace shardmark
