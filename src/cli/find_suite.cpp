// Looks for suites in the working directory and in the installed folder.
#include "cli/find_suite.h"

#include <filesystem>

#include "base/error.h"
#include "cli/shared_folder.h"

namespace shardmark {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHere = "suites";

bool is_folder(const fs::path& path) {
  std::error_code none;
  return fs::is_directory(path, none);
}

// Whether something other than a folder is there. If it cannot be read, the reader reports why.
bool is_there(const fs::path& path) {
  std::error_code none;
  return fs::exists(fs::symlink_status(path, none)) && !is_folder(path);
}

}  // namespace

std::string installed_suites() { return shared_folder("share/shardmark/suites", kHere); }

std::string find_suite(const std::string& name) {
  if (is_there(name)) return name;
  const fs::path path(name), folder = path.parent_path();
  const std::string installed = installed_suites();
  if (path.has_filename() && (folder.empty() || folder == kHere)) {
    for (const std::string& place : {std::string(kHere), installed})
      for (const char* ending : {"", ".yaml"}) {
        const fs::path found = fs::path(place) / (path.filename().string() + ending);
        if (!place.empty() && is_there(found)) return found;
      }
    if (!is_folder(name))
      throw UsageError(name + ": no such suite here, in " + kHere +
                       (installed.empty() ? "" : " or in " + installed) +
                       "; shardmark list shows the available suites");
  }
  throw UsageError(name + (is_folder(name) ? ": cannot be read: it is a folder" : ": no such suite") +
                   "; shardmark list shows the available suites");
}

}  // namespace shardmark
