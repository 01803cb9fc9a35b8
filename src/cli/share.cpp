// Writes the shared form of a study into a folder of reference studies.
#include "cli/share.h"

#include <fmt/format.h>

#include <filesystem>

#include "analysis/admission.h"
#include "analysis/reference/matched.h"
#include "base/error.h"
#include "base/exit_status.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/find_suite.h"
#include "cli/shared_folder.h"
#include "cli/table_output.h"
#include "schema/file.h"

namespace shardmark {
namespace {

// Returns the suite's name if the suite came with the program; other names may contain names of people.
std::string shared_suite(const std::string& path) {
  const std::filesystem::path name = std::filesystem::path(path).filename();
  const std::string suites = installed_suites();
  const bool is_ours = !name.empty() && !suites.empty() && file_exists(std::filesystem::path(suites) / name);
  return is_ours ? name.string() : "";
}

}  // namespace

int share_study(const std::string& path, const std::string& folder, bool overwrite) {
  const StudyData study = read_study(path);
  std::vector<std::string> files = reference_files();
  for (std::string& file : study_files(folder)) files.push_back(std::move(file));
  const std::vector<std::string> reasons = reasons_against(study, files);
  if (!reasons.empty()) {
    log_line(fmt::format("--share: {} does not come into the reference collection:", path));
    for (const std::string& reason : reasons) log_line("  " + printable(reason, ""));
    return kUsage;
  }
  make_directory(folder, "--share");
  const StudyData shared = anonymous(study, shared_suite(study.environment.suite_path));
  const std::string written = std::filesystem::path(folder) / reference_name(shared);
  require_free(written, overwrite, {path});
  write_reference(shared, written);
  print(written + "\n");
  return kDone;
}

}  // namespace shardmark
