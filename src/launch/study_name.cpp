// Numbers of studies.
#include "launch/study_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <regex>

#include "base/error.h"

namespace shardmark {
namespace {

namespace fs = std::filesystem;

constexpr int kMostNumber = 9999;

int newest_number(const std::string& folder, const std::string& stem) {
  static const std::regex numbered("-([0-9]{4})\\.h5(\\.journal)?");
  int newest = 0;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(folder, absent)) {
    const std::string name = entry.path().filename();
    std::smatch found;
    if (!name.starts_with(stem)) continue;
    const std::string rest = name.substr(stem.size());
    if (std::regex_match(rest, found, numbered)) newest = std::max(newest, std::stoi(found.str(1)));
  }
  return newest;
}

}  // namespace

std::string suite_stem(const std::string& suite) { return fs::path(suite).stem(); }

std::string numbered_study(const std::string& folder, const std::string& stem, bool resume) {
  const int newest = newest_number(folder, stem);
  if (resume && newest == 0)
    throw UsageError("nothing to resume: no study of " + stem + " in " + folder + "; leave out --resume");
  if (!resume && newest == kMostNumber)
    throw UsageError(folder + " has " + std::to_string(newest) + " studies of " + stem +
                     "; choose one with -o");
  return fmt::format("{}/{}-{:04}.h5", folder, stem, newest + (resume ? 0 : 1));
}

void link_newest(const std::string& study, const std::string& stem) {
  const fs::path link = fs::path(study).parent_path() / (stem + ".h5");
  if (fs::exists(fs::symlink_status(link)) && !fs::is_symlink(link)) return;
  const fs::path temporary = link.string() + ".new";
  std::error_code ignored;
  fs::remove(temporary, ignored);
  fs::create_symlink(fs::path(study).filename(), temporary, ignored);
  if (!ignored) fs::rename(temporary, link, ignored);
}

}  // namespace shardmark
