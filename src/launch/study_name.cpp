// Numbers the studies of a suite and keeps a link to the newest.
#include "launch/study_name.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <regex>
#include <thread>

#include "base/error.h"
#include "schema/file.h"
#include "schema/journal.h"

namespace shardmark {
namespace {

namespace fs = std::filesystem;

constexpr int kMostNumber = 9999;

// The number in a name: 12 for "gpt2-0012.h5". 0 if it is not a study of this stem.
int number_in(const std::string& name, const std::string& stem) {
  static const std::regex numbered("-([0-9]{4})\\.h5(\\.journal)?");
  if (!name.starts_with(stem)) return 0;
  const std::string rest = name.substr(stem.size());
  std::smatch found;
  return std::regex_match(rest, found, numbered) ? std::stoi(found.str(1)) : 0;
}

int newest_number(const std::string& folder, const std::string& stem) {
  int newest = 0;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(folder, absent))
    newest = std::max(newest, number_in(entry.path().filename(), stem));
  return newest;
}

std::string path_of(const std::string& folder, const std::string& stem, int number) {
  if (number > kMostNumber)
    throw UsageError(fmt::format("{} has {} studies of {}; choose one with -o", folder, kMostNumber, stem));
  return fmt::format("{}/{}-{:04}.h5", folder, stem, number);
}

// Locks the folder while a launch compares and replaces the link; otherwise it could replace the link of a
// later launch. We do not wait if the file system has no locks, or if another process keeps the lock for 5 s:
// it needs microseconds, so it must have been stopped.
File lock_folder(const fs::path& path) {
  constexpr int kTries = 500;
  constexpr std::chrono::milliseconds kPause{10};
  File folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; folder && i < kTries; ++i) {
    if (::flock(folder.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) break;
    std::this_thread::sleep_for(kPause);
  }
  return folder;
}

}  // namespace

std::string suite_stem(const std::string& suite) { return fs::path(suite).stem(); }

std::string numbered_study(const std::string& folder, const std::string& stem, bool resume) {
  const int newest = newest_number(folder, stem);
  if (resume && newest == 0)
    throw UsageError("nothing to resume: no study of " + stem + " in " + folder + "; leave out --resume");
  return path_of(folder, stem, newest + (resume ? 0 : 1));
}

ReservedStudy::ReservedStudy(const std::string& folder, const std::string& stem) {
  int number = newest_number(folder, stem);
  do path_ = path_of(folder, stem, ++number);
  while (!reserve_study(path_));  // another launch may take the number first
}

ReservedStudy::~ReservedStudy() { release_study(path_); }

void link_newest(const std::string& study, const std::string& stem) {
  const fs::path link = fs::path(study).parent_path() / (stem + ".h5");
  if (fs::exists(fs::symlink_status(link)) && !fs::is_symlink(link)) return;
  const File lock = lock_folder(link.parent_path());
  std::error_code ignored;
  const fs::path before = fs::read_symlink(link, ignored), name = fs::path(study).filename();
  if (!before.has_parent_path() && number_in(before, stem) > number_in(name, stem) &&
      fs::exists(link, ignored))
    return;  // that launch began later and ended earlier
  const fs::path temporary = fmt::format("{}.{}.new", link.string(), ::getpid());
  fs::create_symlink(name, temporary, ignored);
  if (!ignored) fs::rename(temporary, link, ignored);
}

}  // namespace shardmark
