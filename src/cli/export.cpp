// shardmark export: a whole study, raw samples included, as CSV files or one JSON document.
#include "analysis/export.h"

#include <iostream>
#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "cli/table_output.h"
#include "schema/file.h"

namespace shardmark {
namespace {

struct ExportOptions {
  std::string study;
  std::string csv;
  std::string json;
  bool overwrite = false;
};

// Checks all files before the first is written.
void require_all_free(const ExportOptions& options) {
  std::vector<std::filesystem::path> paths;
  if (!options.csv.empty())
    for (const char* key : {"points", "fields", "environment", "samples"})
      paths.push_back(std::filesystem::path(options.csv) / (std::string(key) + ".csv"));
  if (!options.json.empty() && options.json != "-") paths.emplace_back(options.json);
  for (const auto& path : paths) require_free(path, options.overwrite, {options.study});
}

void write_file(const std::filesystem::path& path, const char* flag,
                const std::function<void(std::ostream&)>& write) {
  write_whole(path, std::string("name a writable path: ") + flag, write);
  print(path.string() + "\n");
}

int export_study(const ExportOptions& options) {
  if (options.csv.empty() && options.json.empty())
    throw UsageError("export needs a format: --csv DIR, --json FILE, or --json - for the standard output");
  const StudyData study = read_study(options.study);
  require_all_free(options);
  if (!options.csv.empty()) {
    const std::filesystem::path directory = options.csv;
    make_directory(directory, "--csv");
    for (const Table& table : {points_export(study), fields_export(), environment_export(study)})
      write_file(directory / (table.key + ".csv"), "--csv", [&](std::ostream& out) { out << to_csv(table); });
    write_file(directory / "samples.csv", "--csv", [&](std::ostream& out) { write_samples_csv(out, study); });
  }
  if (options.json == "-") {
    write_json(std::cout, study);
    if (!std::cout.flush()) throw SystemError("cannot write to the standard output");
  } else if (!options.json.empty()) {
    write_file(options.json, "--json", [&](std::ostream& out) { write_json(out, study); });
  }
  return kDone;
}

std::function<int()> define_export(CLI::App& app) {
  auto options = std::make_shared<ExportOptions>();
  app.add_option("study", options->study, "a study (x.h5)")->required();
  app.add_option("--csv", options->csv,
                 "write DIR/points.csv, samples.csv (a line for each sample), environment.csv and fields.csv "
                 "(units, meanings)");
  app.add_option("--json", options->json, "write one JSON document into FILE; - is the standard output");
  add_overwrite_flag(app, options->overwrite);
  return [options] { return export_study(*options); };
}

const Registration<CommandEntry> export_command{
    "export", {"all of a study, with its raw samples, as CSV or JSON", define_export}};

}  // namespace
}  // namespace shardmark
