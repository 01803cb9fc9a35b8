// shardmark report: the tables of one or several studies, for people or for programs.
#include "analysis/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>

#include "cli/command.h"

namespace shardmark {
namespace {

struct ReportOptions {
  std::vector<std::string> studies;
  std::vector<std::string> only;
  std::string csv;
  bool json = false;
  bool markdown = false;
};

// Each file once, though a pattern may name it twice (results/quick.h5 links the newest study).
std::vector<StudyData> read_studies(const std::vector<std::string>& paths) {
  std::vector<StudyData> studies;
  std::set<std::filesystem::path> known;
  for (const std::string& path : paths)
    if (known.insert(std::filesystem::weakly_canonical(std::filesystem::absolute(path))).second)
      studies.push_back(read_study(path));
  return studies;
}

void keep_only(std::vector<Table>& tables, const std::vector<std::string>& keys) {
  if (keys.empty()) return;
  std::string known;
  for (const Table& table : tables) known += (known.empty() ? "" : ", ") + table.key;
  std::vector<Table> kept;
  for (const std::string& key : keys) {
    const auto found =
        std::find_if(tables.begin(), tables.end(), [&](const Table& table) { return table.key == key; });
    if (found == tables.end())
      throw UsageError(fmt::format("--table {}: this report has no such table; it has: {}", key, known));
    kept.push_back(*found);
  }
  tables = std::move(kept);
}

void print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw SystemError("cannot write to the standard output");
}

void write_csv(const std::vector<Table>& tables, const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  for (const Table& table : tables) {
    const std::filesystem::path path = directory / (table.key + ".csv");
    std::ofstream file(path, std::ios::binary);
    file << to_csv(table);
    file.close();
    if (!file)
      throw UsageError(path.string() +
                       ": cannot be written; name a directory that can: --csv DIR, or --csv -");
    print(path.string() + "\n");
  }
}

std::string rendered(const Table& table, const ReportOptions& options, bool one_of_several) {
  if (options.csv == "-") return (one_of_several ? "# " + table.key + "\r\n" : "") + to_csv(table);
  return options.markdown ? to_markdown(table) : to_text(table);
}

int report(const ReportOptions& options) {
  const std::vector<StudyData> studies = read_studies(options.studies);
  std::vector<Table> tables = make_report(studies);
  keep_only(tables, options.only);
  if (options.json) {
    auto document = nlohmann::ordered_json{{"tables", nlohmann::ordered_json::array()}};
    for (const Table& table : tables) document["tables"].push_back(to_json(table));
    print(document.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  } else if (!options.csv.empty() && options.csv != "-") {
    write_csv(tables, options.csv);
  } else {
    std::string text;
    for (const Table& table : tables)
      text += (text.empty() ? "" : "\n") + rendered(table, options, tables.size() > 1);
    print(text);
  }
  return kDone;
}

std::function<int()> define(CLI::App& app) {
  auto options = std::make_shared<ReportOptions>();
  app.add_option("studies", options->studies, "studies (x.h5); several make one report")->required();
  app.add_option("--table", options->only,
                 "only the tables with these keys, such as strategies, weak_scaling");
  auto* csv = app.add_option("--csv", options->csv,
                             "write each table to DIR/<key>.csv, or all to the standard output: -");
  auto* json = app.add_flag("--json", options->json, "one JSON document")->excludes(csv);
  app.add_flag("--markdown", options->markdown, "tables in Markdown")->excludes(csv)->excludes(json);
  return [options] { return report(*options); };
}

const Registration<CommandEntry> registered{"report", {"tables of one or several studies", define}};

}  // namespace
}  // namespace shardmark
