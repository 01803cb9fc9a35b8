// shardmark reference: lists the reference collection, or adds a study to it.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "analysis/admission.h"
#include "analysis/reference/tables.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/find_suite.h"
#include "cli/shared_folder.h"
#include "cli/table_output.h"
#include "schema/file.h"

namespace shardmark {
namespace {

namespace fs = std::filesystem;

struct ReferenceOptions {
  std::string action;
  std::string study;
  std::string to = kReferencesHere;
  TableOutput output;
};

int list_references(const ReferenceOptions& options) {
  std::vector<StudyData> studies;
  for (const std::string& file : reference_files())
    studies.push_back(read_study(file, Load::without_samples));
  if (studies.empty())
    throw UsageError(
        fmt::format("no reference studies in {}, and none came with this program; shardmark "
                    "reference add writes one",
                    kReferencesHere));
  write_tables({collection_table(studies)}, options.output);
  return kDone;
}

// Returns the suite's name if the suite came with the program; other names may contain names of people.
std::string shared_suite(const std::string& path) {
  const fs::path name = fs::path(path).filename();
  const std::string suites = installed_suites();
  return name.empty() || suites.empty() || !file_exists(fs::path(suites) / name) ? "" : name.string();
}

int add_reference(const ReferenceOptions& options) {
  const bool is_here = options.to == kReferencesHere;
  if (is_here && !fs::is_directory(kReferencesHere))
    throw UsageError(fmt::format(
        "no folder {} here: go to a clone of shardmark, or name a folder with --to DIR", kReferencesHere));
  const StudyData study = read_study(options.study);
  std::vector<std::string> files = reference_files();
  for (std::string& file : study_files(options.to)) files.push_back(std::move(file));
  const std::vector<std::string> reasons = reasons_against(study, files);
  if (!reasons.empty()) {
    log_line(fmt::format("{} does not come into the reference collection:", options.study));
    for (const std::string& reason : reasons) log_line("  " + printable(reason, ""));
    return kUsage;
  }
  if (!is_here) make_directory(options.to, "--to");
  const StudyData shared = anonymous(study, shared_suite(study.environment.suite_path));
  const std::string path = fs::path(options.to) / reference_name(shared);
  require_free(path, options.output.overwrite, {options.study});
  write_reference(shared, path);
  print(path + "\n");
  return kDone;
}

int reference(const ReferenceOptions& options) {
  if (options.action == "list") {
    if (!options.study.empty())
      throw UsageError("reference list takes no study: " + quoted_line(options.study));
    return list_references(options);
  }
  if (options.study.empty()) throw UsageError("which study? accepted: shardmark reference add x.h5");
  return add_reference(options);
}

std::function<int()> define_reference(CLI::App& app) {
  auto options = std::make_shared<ReferenceOptions>();
  app.add_option("action", options->action,
                 "list: what the collection here and the one that came with the program hold; add: check a "
                 "study and write it into the collection without names of hosts and people")
      ->required()
      ->check(CLI::IsMember({"list", "add"}));
  auto* study = app.add_option("study", options->study, "a published study (x.h5), for add");
  auto* to =
      app.add_option("--to", options->to, "folder to write it into")->capture_default_str()->needs(study);
  add_table_flags(app, options->output);
  for (const char* flag : kTableFlags) {
    study->excludes(app.get_option(flag));
    to->excludes(app.get_option(flag));
  }
  return [options] { return reference(*options); };
}

const Registration<CommandEntry> reference_command{
    "reference", {"studies that say whether a number is good: list, add", define_reference}};

}  // namespace
}  // namespace shardmark
