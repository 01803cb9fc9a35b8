// Writes a whole study as CSV files or as one JSON document, which analysis/export.h makes.
#include "cli/raw_output.h"

#include <iostream>

#include "analysis/export.h"
#include "base/error.h"
#include "schema/file.h"

namespace shardmark {
namespace {

void write_raw_csv(const StudyData& study, const TableOutput& output) {
  const std::filesystem::path directory = output.csv;
  for (const char* key : {"points", "fields", "environment", "samples"})  // all, before the first is written
    require_free(directory / (std::string(key) + ".csv"), output.overwrite, output.inputs);
  make_directory(directory, "--csv");
  const auto write_file = [&](const std::string& key, const std::function<void(std::ostream&)>& write) {
    const std::filesystem::path path = directory / (key + ".csv");
    write_whole(path, "name a writable directory: --csv DIR", write);
    print(path.string() + "\n");
  };
  for (const Table& table : {points_export(study), fields_export(), environment_export(study)})
    write_file(table.key, [&](std::ostream& out) { out << to_csv(table); });
  write_file("samples", [&](std::ostream& out) { write_samples_csv(out, study); });
}

}  // namespace

void write_raw(const std::string& study, const TableOutput& output) {
  const StudyData data = read_study(study);
  if (!output.csv.empty()) return write_raw_csv(data, output);
  write_json(std::cout, data);
  if (!std::cout.flush()) throw SystemError("cannot write to the standard output");
}

}  // namespace shardmark
