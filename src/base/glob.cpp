// Matches a pattern folder by folder. glob(3) would be shorter but has no `**`.
#include "base/glob.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>

namespace shardmark {
namespace {

namespace fs = std::filesystem;
using Part = fs::path::const_iterator;

// Appends the files below `folder` that match the parts of the pattern from `part` on. A part without
// wildcards is only appended to the path, so a folder that can be entered but not listed is no obstacle. The
// part `**` matches no folder (the first recursion) or one folder, below which the same `**` is tried again.
void expand(const fs::path& folder, Part part, Part end, std::vector<std::string>& found) {
  std::error_code error;
  if (part == end) {
    if (fs::is_regular_file(folder, error)) found.push_back(folder.string());
    return;
  }
  const Part next = std::next(part);
  const std::string name = part->string();
  const bool any_depth = name == "**";
  if (!any_depth && name.find_first_of("*?[") == std::string::npos)
    return expand(folder / name, next, end, found);
  if (any_depth) expand(folder, next, end, found);
  for (const auto& entry : fs::directory_iterator(folder.empty() ? "." : folder, error)) {
    const std::string child = entry.path().filename().string();
    if (::fnmatch(any_depth ? "*" : name.c_str(), child.c_str(), FNM_PERIOD) != 0) continue;
    const bool folder_in_depth = any_depth && entry.is_directory(error) && !entry.is_symlink(error);
    if (folder_in_depth || !any_depth) expand(folder / child, any_depth ? part : next, end, found);
  }
}

}  // namespace

std::vector<std::string> glob(const std::string& pattern) {
  const fs::path path = fs::path(pattern).lexically_normal();
  std::vector<std::string> found;
  expand({}, path.begin(), path.end(), found);
  std::sort(found.begin(), found.end());
  // A pattern such as `**/**` finds the same file twice.
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::vector<std::string> glob_near(const std::string& folder, const std::string& pattern) {
  std::vector<std::string> found = glob(pattern);
  if (found.empty() && !folder.empty()) found = glob((fs::path(folder) / pattern).string());
  return found;
}

std::string path_near(const std::string& folder, const std::string& path) {
  std::error_code error;
  const fs::path other = fs::path(folder) / path;
  return folder.empty() || fs::exists(path, error) || !fs::exists(other, error) ? path : other.string();
}

}  // namespace shardmark
