// Finds folders that came with the program from the location of its file.
#include "cli/shared_folder.h"

#include <filesystem>

#include "analysis/reference/matched.h"
#include "cli/command_line.h"

namespace shardmark {

namespace fs = std::filesystem;

std::string shared_folder(const std::string& installed, const std::string& of_sources) {
  const fs::path program = own_program();
  const fs::path prefix = program.parent_path().parent_path();
  // These are the locations if the program is installed, in build/ of a checkout, and in build/sanitize/ of
  // one.
  for (const fs::path& folder :
       {prefix / installed, prefix / of_sources, prefix.parent_path() / of_sources}) {
    std::error_code missing;
    if (!program.empty() && fs::is_directory(folder, missing)) return folder;
  }
  return "";
}

std::vector<std::string> reference_files() {
  std::vector<std::string> files = study_files(kReferencesHere);
  const std::string came = shared_folder("share/shardmark/reference", kReferencesHere);
  std::error_code none;
  if (came.empty() || fs::equivalent(kReferencesHere, came, none)) return files;
  for (std::string& file : study_files(came)) files.push_back(std::move(file));
  return files;
}

}  // namespace shardmark
